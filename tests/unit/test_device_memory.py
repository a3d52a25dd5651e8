"""Whether the memory of devices is waited for."""

from collections.abc import Iterator, Mapping

import pytest

from jobs.node import device_memory

BEFORE = {"nvidia 0": 500}


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_memory, "PATIENCE_S", 0.2)
    monkeypatch.setattr(device_memory, "POLL_S", 0.01)


def test_memory_that_comes_back_is_waited_for() -> None:
    readings: Iterator[Mapping[str, int]] = iter([{"nvidia 0": mib} for mib in (9000, 700, 510)])

    assert device_memory.still_held(BEFORE, lambda: next(readings)) == ()
    assert list(readings) == []


def test_memory_that_does_not_come_back_is_told() -> None:
    [told] = device_memory.still_held(BEFORE, lambda: {"nvidia 0": 9000, "nvidia 1": 9000})

    assert told.startswith("8500 MiB of device nvidia 0 are still in use")


def test_a_machine_without_devices_is_not_waited_for() -> None:
    assert device_memory.still_held(device_memory.used()) == ()
