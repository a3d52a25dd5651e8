"""AMD devices, through the amdsmi that came with the node's ROCm: it must match the driver."""


def devices() -> list[tuple[str, str, float]]:
    try:
        import amdsmi
    except (ImportError, OSError):
        return []
    try:
        amdsmi.amdsmi_init()
    except amdsmi.AmdSmiException:
        return []
    try:
        return [_device(handle) for handle in amdsmi.amdsmi_get_processor_handles()]
    finally:
        amdsmi.amdsmi_shut_down()


def _device(handle: object) -> tuple[str, str, float]:
    import amdsmi

    asic = amdsmi.amdsmi_get_gpu_asic_info(handle)
    memory = amdsmi.amdsmi_get_gpu_vram_info(handle)["vram_size"] / 1024
    return asic["market_name"], asic["target_graphics_version"], memory
