"""Cards' architectures, as drivers and compilers count them."""

import re


def capability(arch: str) -> tuple[int, int]:
    """`sm_90` is 9.0, `sm_120` 12.0; `gfx942` is 9.4 to torch, `gfx1100` 11.0."""
    digits = re.sub(r"\D", "", arch) if arch.startswith("sm_") else _gfx_digits(arch)
    return int(digits[:-1]), int(digits[-1])


def _gfx_digits(arch: str) -> str:
    """Less the stepping, which is one (hexadecimal) digit."""
    return arch.removeprefix("gfx")[:-1]
