"""The device, as vLLM and torch see it."""

from jobs.probe.reading.naming import class_path


def peak_mib() -> int | None:
    """The most that tensors of this process took; None where they are in the host's memory."""
    import torch
    from vllm.platforms import current_platform

    if current_platform.device_type == "cpu":
        return None
    return int(torch.cuda.max_memory_allocated()) >> 20


def read() -> dict[str, str]:
    import torch
    from vllm.platforms import current_platform

    capability = current_platform.get_device_capability()
    seen = {
        "type": current_platform.device_type,
        "name": current_platform.get_device_name(),
        "platform": class_path(current_platform),
    }
    if capability is not None:
        seen["arch"] = f"{capability.major}.{capability.minor}"
    if current_platform.device_type == "cpu":
        seen["arch"] = torch.backends.cpu.get_cpu_capability()
    if torch.version.hip and torch.cuda.is_available():
        seen["arch"] = torch.cuda.get_device_properties(0).gcnArchName
    return seen
