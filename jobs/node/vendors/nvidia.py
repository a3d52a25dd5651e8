"""NVIDIA devices, through NVML."""

import os


def devices() -> list[tuple[str, str, float]]:
    try:
        import pynvml
    except ImportError:
        return []
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        handles = map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))
        return [_device(handle) for handle in handles]
    finally:
        pynvml.nvmlShutdown()


def used_mib() -> dict[str, int]:
    try:
        import pynvml
    except ImportError:
        return {}
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return {}
    try:
        return {name: _used_mib(name) for name in _visible(pynvml.nvmlDeviceGetCount())}
    except pynvml.NVMLError:
        return {}
    finally:
        pynvml.nvmlShutdown()


def _visible(count: int) -> list[str]:
    shown = os.environ.get("CUDA_VISIBLE_DEVICES")
    return [str(index) for index in range(count)] if shown is None else shown.split(",")


def _used_mib(name: str) -> int:
    import pynvml

    by_name = pynvml.nvmlDeviceGetHandleByUUID
    handle = pynvml.nvmlDeviceGetHandleByIndex(int(name)) if name.isdigit() else by_name(name)
    return int(pynvml.nvmlDeviceGetMemoryInfo(handle).used) >> 20


def _device(handle: object) -> tuple[str, str, float]:
    import pynvml

    major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle).total / 2**30
    return pynvml.nvmlDeviceGetName(handle), f"sm_{major}{minor}", memory
