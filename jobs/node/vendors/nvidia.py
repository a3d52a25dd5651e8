"""NVIDIA devices, through NVML."""


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


def _device(handle: object) -> tuple[str, str, float]:
    import pynvml

    major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle).total / 2**30
    return pynvml.nvmlDeviceGetName(handle), f"sm_{major}{minor}", memory
