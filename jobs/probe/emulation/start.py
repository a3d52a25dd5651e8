"""The order in which a process comes to believe that it has the card."""

import dataclasses
import functools
import json
import os
from typing import Any

from jobs.contract.emulation import EMULATION_VARIABLE, Card, Emulated, Emulation, PackageSet
from jobs.probe.emulation import (
    amdsmi,
    count,
    engine,
    loader,
    meta,
    nvml,
    operators,
    packages,
    torch_device,
    worker,
)
from jobs.probe.emulation.ledger import Ledger
from jobs.probe.emulation.modules import Finder

HERE = Ledger()
"""Of this process: what is replaced stays so until it ends, and in its forks."""


def asked() -> Emulation | None:
    text = os.environ.get(EMULATION_VARIABLE)
    if text is None:
        return None
    raw: dict[str, Any] = json.loads(text)
    packages_ = raw["packages"]
    return Emulation(
        card=Card(**raw["card"]),
        packages=PackageSet(
            **packages_ | {name: tuple(packages_[name]) for name in ("installed", "assumed")}
        ),
        operators=raw["operators"],
    )


def have(devices: int) -> None:
    """From now on, in this process and those that it starts, there are so many of the card."""
    count.HERE.devices = devices


def seen() -> Emulated | None:
    """For the report."""
    emulation = asked()
    if emulation is None:
        return None
    return Emulated(
        card=dataclasses.replace(emulation.card, devices=count.present()),
        packages=emulation.packages,
        stubs=tuple(HERE.stubs),
        replaced=tuple(HERE.replaced),
        notes=tuple(HERE.notes),
    )


def install() -> None:
    """Become a host of the card, if one is asked for. Raises what went wrong, each time."""
    if error := _installed():
        raise error


@functools.cache
def _installed() -> Exception | None:
    """Once, and what went wrong: a host survives it, so that its cells can report it."""
    emulation = asked()
    if emulation is None:
        return None
    # Modules of a whole engine are imported here: anything at all can go wrong.
    try:
        _pretend(emulation, HERE)
    except Exception as error:  # noqa: BLE001
        return error
    return None


def _pretend(emulation: Emulation, ledger: Ledger) -> None:
    """First what `import vllm` looks at, then what it brings."""
    card = emulation.card
    finder = Finder(ledger)
    packages.install(emulation, finder)
    if card.vendor == "nvidia":
        for name in nvml.MODULES:
            finder.answer(name, nvml.contents(card))
    else:
        finder.answer(amdsmi.MODULE, amdsmi.contents(card))
    torch_device.replace(card, ledger)
    operators.install(emulation, finder, ledger)
    finder.install()
    meta.enter(ledger)

    engine.replace(ledger)
    worker.replace(card, ledger)
    loader.register(ledger)
