"""The parts of an emulated card that need no engine."""

import importlib
import importlib.util
import sys
from collections.abc import Iterator

import pytest

from jobs.contract.emulation import EMULATION_VARIABLE, Card, Emulation, PackageSet
from jobs.contract.seen import ExceptionSeen
from jobs.contract.terms import to_json
from jobs.probe.emulation import amdsmi, count, nvml, start
from jobs.probe.emulation.architecture import capability
from jobs.probe.emulation.ledger import Ledger
from jobs.probe.emulation.limits import EmulationLacks, EmulationLimit
from jobs.probe.emulation.modules import Finder, StubModule

H100 = Card(
    name="h100",
    vendor="nvidia",
    product="NVIDIA H100 80GB HBM3",
    arch="sm_90",
    memory_bytes=85520809984,
    compute_units=132,
    shared_memory_bytes=227 << 10,
    devices=2,
)
MI300X = Card(
    name="mi300x",
    vendor="amd",
    product="AMD Instinct MI300X",
    arch="gfx942",
    memory_bytes=206141652992,
    compute_units=304,
    shared_memory_bytes=64 << 10,
    pci_device="0x74a1",
)


class Replaceable:
    answer = 1


@pytest.fixture
def finder() -> Iterator[Finder]:
    before = set(sys.modules)
    finder = Finder(Ledger())
    finder.install()
    yield finder
    sys.meta_path.remove(finder)
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("arch", "expected"),
    [
        ("sm_80", (8, 0)),
        ("sm_103", (10, 3)),
        ("sm_120", (12, 0)),
        ("gfx90a", (9, 0)),
        ("gfx942", (9, 4)),
        ("gfx1100", (11, 0)),
        ("gfx1201", (12, 0)),
    ],
)
def test_an_architecture_has_the_capability_that_torch_gives_it(
    arch: str, expected: tuple[int, int]
) -> None:
    assert capability(arch) == expected


def test_nvml_has_the_card_as_often_as_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(count.HERE, "devices", 2)
    library = StubModule("pynvml")
    vars(library).update(nvml.contents(H100))

    handle = library.nvmlDeviceGetHandleByIndex(1)

    assert library.nvmlDeviceGetCount() == 2
    assert library.nvmlDeviceGetName(handle) == "NVIDIA H100 80GB HBM3"
    assert library.nvmlDeviceGetCudaComputeCapability(handle) == (9, 0)
    assert library.nvmlDeviceGetMemoryInfo(handle).total == 85520809984
    assert library.nvmlDeviceGetHandleByUUID(library.nvmlDeviceGetUUID(handle)) == handle


def test_amdsmi_describes_the_card() -> None:
    library = amdsmi.contents(MI300X)

    [handle] = library["amdsmi_get_processor_handles"]()

    asic = library["amdsmi_get_gpu_asic_info"](handle)
    assert asic["target_graphics_version"] == "gfx942"
    assert asic["device_id"] == "0x74a1"


def test_what_a_made_up_module_lacks_is_a_limit_and_no_attribute(finder: Finder) -> None:
    finder.answer("made_up", {"there": 1})
    made_up = importlib.import_module("made_up")

    assert made_up.there == 1
    assert not hasattr(made_up, "missing")
    with pytest.raises(EmulationLacks, match=r"made_up\.missing"):
        _ = made_up.missing


def test_a_hollow_package_can_be_imported_and_not_used(finder: Finder) -> None:
    finder.hollow("hollow")

    assert importlib.util.find_spec("hollow.deep.inside") is not None
    thing = importlib.import_module("hollow.deep.inside").Thing
    assert issubclass(type("Derived", (thing,), {}), thing)
    with pytest.raises(EmulationLimit, match=r"hollow\.deep\.inside\.Thing"):
        thing()


def test_whatever_is_replaced_or_made_up_is_in_the_ledger() -> None:
    ledger = Ledger()
    finder = Finder(ledger)
    finder.answer("made_up", {})
    finder.hollow("hollow")
    ledger.replace(Replaceable, "answer", 2)

    assert ledger.stubs == ["made_up", "hollow.*"]
    assert ledger.replaced == [f"{__name__}.Replaceable.answer"]
    assert Replaceable.answer == 2


def test_what_is_to_be_pretended_comes_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    packages = PackageSet(name="image", installed=("a==1",), assumed=("b",))
    emulation = Emulation(card=MI300X, packages=packages, operators="operators.json")
    monkeypatch.setenv(EMULATION_VARIABLE, to_json(emulation))

    assert start.asked() == emulation
    emulated = start.seen()
    assert emulated is not None
    assert (emulated.card, emulated.packages) == (MI300X, packages)


def test_nothing_is_pretended_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(EMULATION_VARIABLE, raising=False)

    assert start.asked() is None
    assert start.seen() is None


def seen(type_: str, message: str) -> ExceptionSeen:
    return ExceptionSeen(type=type_, message=message)
