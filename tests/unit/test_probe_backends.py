"""How to ask backends for other hardware without harm."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.probe import backends


@pytest.fixture
def platforms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A vLLM that has two platforms, one of which is in use."""
    folder = tmp_path / "vllm" / "platforms"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    (folder / "__init__.py").write_text("from vllm.platforms import cpu")
    (folder / "cpu.py").touch()
    (folder / "rocm.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "vllm"]:
        del sys.modules[name]


@pytest.mark.usefixtures("platforms")
def test_the_platform_of_other_hardware_cannot_be_imported_meanwhile() -> None:
    with backends.of_this_platform_only():
        importlib.import_module("vllm.platforms.cpu")
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("vllm.platforms.rocm")


@pytest.mark.usefixtures("platforms")
def test_afterwards_everything_can_be_imported_again() -> None:
    with backends.of_this_platform_only():
        pass

    importlib.import_module("vllm.platforms.rocm")
