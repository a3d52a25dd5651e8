from dataclasses import replace

import pytest

from jobs.contract.nodes import Device, NodeSeen
from orchestrator.asked.config import Hardware
from orchestrator.running import labels
from orchestrator.running.labels import Described

H200 = Device(product="NVIDIA H200", card="h200", arch="sm_90", memory_gib=140.4)
CARDS = (
    Hardware(vendor="nvidia", card="h200", arch="sm_90"),
    Hardware(vendor="amd", card="mi300x", arch="gfx942", pci_device="0x74a1"),
)
PROCESSOR = NodeSeen(
    host="node-7",
    python="3.11.7",
    vendor="cpu",
    arch="x86_64",
    cpus=8,
    memory_gib=64.0,
    cache="/cache",
    disk_free_gib=100.0,
)
EIGHT = replace(PROCESSOR, vendor="nvidia", arch="sm_90", devices=(H200,) * 8, driver="580.95.05")


def described(seen: NodeSeen | None, gpus: int = 8, **said: str) -> Described:
    """*said* are labels of ours, without their prefix."""
    return named({f"vm.{name}": value for name, value in said.items()}, seen, gpus)


def named(said: dict[str, str], seen: NodeSeen | None, gpus: int = 8) -> Described:
    return labels.described(said, gpus, seen, CARDS)


def trouble(seen: NodeSeen | None, gpus: int = 8, **said: str) -> str:
    [only] = named({f"vm.{name}": value for name, value in said.items()}, seen, gpus).troubles
    return only


def test_a_node_without_labels_is_what_it_saw_of_itself() -> None:
    found = described(EIGHT)

    assert found.labels == {
        "vm.cpu": "yes",
        "vm.vendor": "nvidia",
        "vm.card": "h200",
        "vm.arch": "sm_90",
    }
    assert found.driver == "580.95.05"
    assert found.device_memory_gib == 140.4
    assert not found.troubles


def test_a_label_counts_where_it_is_set() -> None:
    found = described(EIGHT, cpu="no", driver="580", card="h200")

    assert found.labels["vm.cpu"] == "no"
    assert found.driver == "580"


def test_an_operator_s_word_of_cards_stands_where_the_machine_has_none() -> None:
    found = described(PROCESSOR, vendor="amd", card="mi300x", arch="gfx942", count="8")

    assert found.labels["vm.card"] == "mi300x"
    assert found.labels["vm.cpu"] == "yes"
    assert not found.troubles


def test_the_processor_is_not_taken_for_the_arch_of_a_labelled_card() -> None:
    assert "vm.arch" not in described(PROCESSOR, vendor="nvidia", card="h1000").labels
    assert "vm.arch" not in described(PROCESSOR, gpus=2).labels


def test_what_is_known_of_a_card_need_not_be_seen_or_labelled() -> None:
    known = {"vm.cpu": "yes", "vm.vendor": "nvidia", "vm.card": "h200", "vm.arch": "sm_90"}
    without_nvml = replace(EIGHT, arch=None, devices=(Device(card="h200"),) * 8)

    assert described(without_nvml).labels == known
    assert described(PROCESSOR, card="h200").labels == known


def test_a_card_without_a_name_is_told_by_its_id_on_the_bus() -> None:
    nameless = Device(arch="gfx942", pci_device="0x74a1")
    seen = replace(EIGHT, vendor="amd", arch="gfx942", devices=(nameless,) * 8)

    assert described(seen).labels["vm.card"] == "mi300x"
    assert "vm.card=h200, and mi300x is seen" in described(seen, card="h200").troubles[0]


def test_an_id_that_nobody_knows_tells_no_card() -> None:
    seen = replace(EIGHT, devices=(Device(pci_device="0x1"), Device()))

    assert "vm.card" not in described(seen, gpus=2).labels


@pytest.mark.parametrize("said", [{"card": "h100"}, {"vendor": "amd"}, {"arch": "sm_80"}])
def test_no_cell_of_a_card_goes_where_a_label_contradicts_the_card(said: dict[str, str]) -> None:
    found = named({f"vm.{name}": value for name, value in said.items()}, EIGHT)

    assert found.labels == {"vm.cpu": "yes"}
    [(name, value)] = said.items()
    assert f"vm.{name}={value}, and " in found.troubles[0]
    assert "takes no cell of a card" in found.troubles[0]


def test_a_label_of_another_driver_is_said_and_the_card_is_used() -> None:
    found = described(EIGHT, driver="535.1")

    assert found.labels["vm.card"] == "h200"
    assert "vm.driver=535.1, and 580.95.05 is seen" in found.troubles[0]


def test_memory_may_be_labelled_with_a_round_figure() -> None:
    assert not described(EIGHT, memory_gib="141").troubles
    assert "140.4 is seen" in trouble(EIGHT, memory_gib="80")


def test_a_label_that_is_spelt_wrongly_is_said_with_the_nearest() -> None:
    assert 'vm.crad means nothing to vllm-matrix. Did you mean "vm.card"?' in trouble(
        EIGHT, crad="h200"
    )
    assert "There are vm.cpu, vm.vendor" in trouble(EIGHT, floor_of_the_building="2")


def test_memory_that_is_no_number_is_said() -> None:
    assert (
        "vm.memory_gib=lots is no number of GiB"
        in described(PROCESSOR, memory_gib="lots").troubles[0]
    )


def test_ray_has_to_count_as_many_gpus_as_are_seen() -> None:
    assert "Ray counts 4 GPUs, and 8 are seen" in trouble(EIGHT, 4)
    assert not described(PROCESSOR, gpus=4).troubles


def test_what_a_node_noted_explains_why_ray_counts_none() -> None:
    mi300x = Device(arch="gfx942")
    seen = replace(EIGHT, vendor="amd", devices=(mi300x,) * 8, notes=("amdsmi is not installed",))

    assert described(seen, gpus=0).troubles == ("amdsmi is not installed",)


def test_cards_of_several_kinds_are_told_by_no_label() -> None:
    a100 = Device(card="a100_80", arch="sm_80", memory_gib=80.0)
    found = described(replace(EIGHT, arch=None, devices=(H200, a100)), gpus=2)

    assert "vm.card" not in found.labels
    assert "several kinds of cards (a100_80, h200)" in found.troubles[0]


def test_a_cache_whose_disk_is_nearly_full_is_said() -> None:
    assert "the disk of its cache /cache has 4.2 GiB left" in trouble(
        replace(EIGHT, disk_free_gib=4.2)
    )


def test_a_node_that_did_not_answer_is_what_its_labels_say() -> None:
    found = described(None, card="h200")

    assert found.labels == {"vm.vendor": "nvidia", "vm.card": "h200", "vm.arch": "sm_90"}
    assert not found.troubles
