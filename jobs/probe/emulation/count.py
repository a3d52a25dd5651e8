"""How many of the card this process has. A host has one; its cell says otherwise after the fork."""

from dataclasses import dataclass


@dataclass(slots=True)
class Count:
    devices: int = 1


HERE = Count()
"""Of this process: what answers for the card is made before the number is known."""


def present() -> int:
    return HERE.devices
