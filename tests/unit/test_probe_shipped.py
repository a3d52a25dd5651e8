"""Models that come with the project."""

import json

import pytest

from jobs.probe import shipped


def test_a_shipped_target_and_a_shipped_draft_become_folders() -> None:
    resolved = shipped.resolve(
        {
            "model": "shipped:llama8",
            "dtype": "float32",
            "speculative_config": {"method": "eagle3", "model": "shipped:eagle3"},
        }
    )

    assert resolved == {
        "model": str(shipped.MODELS / "llama8"),
        "dtype": "float32",
        "speculative_config": {"method": "eagle3", "model": str(shipped.MODELS / "eagle3")},
    }


def test_other_models_stay_as_they_are() -> None:
    arguments = {"model": "org/model", "speculative_config": {"method": "mtp"}}

    assert shipped.resolve(arguments) == arguments


@pytest.mark.parametrize("name", ["shipped:nothing", "shipped:../probe", "shipped:"])
def test_a_name_that_is_no_shipped_model_is_refused_with_those_that_are(name: str) -> None:
    with pytest.raises(ValueError, match="llama8"):
        shipped.resolve({"model": name})


def test_every_shipped_configuration_names_its_architecture() -> None:
    for config in shipped.MODELS.glob("*/config.json"):
        assert json.loads(config.read_text())["architectures"], config
