"""From the words of a command line to checked configurations, by way of Hydra."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import hydra
import yaml
from hydra._internal.utils import get_args_parser
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Override, OverrideType
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from orchestrator import discretion
from orchestrator.asked import checking
from orchestrator.asked.checking import SENSELESS
from orchestrator.asked.conf_files import AXES, ConfFiles, nearest
from orchestrator.asked.config import Config
from orchestrator.errors import ConfigError

_PACKAGE = Path(__file__).parents[1]
CONF = next(folder for folder in (_PACKAGE / "conf", _PACKAGE.parent / "conf") if folder.is_dir())
"""Beside the package in a checkout, inside of it when installed from a wheel."""

_MISTAKES = (HydraException, OmegaConfBaseException, yaml.YAMLError, ValueError)

GROUPS = (*AXES, "suite", "gate")


def compose(words: Sequence[str]) -> list[Config]:
    """
    Every configuration that *words* ask for: one, or with `-m` one per job.

    Raises ConfigError with all mistakes of all of them. Returns none where Hydra
    only had to answer (`--help`, `--cfg job`, `--info`).
    """
    said = get_args_parser().parse_args(words)
    folders = [CONF, *([Path(said.config_dir)] if said.config_dir else [])]
    overrides = _parsed(said.overrides)
    unknown = [mistake for each in overrides for mistake in _unknown_choices(each, folders)]
    understood = [known for word in words if (known := _understood(word, overrides, folders))]
    mistakes: list[str] = []
    configs: list[Config] = []
    for job, choices in _composed(understood):
        try:
            configs.append(_checked(job, folders, choices))
        except ConfigError as error:
            mistakes += error.mistakes
    mistakes += unknown or _lost(_chosen(overrides, folders), configs)
    if mistakes:
        raise ConfigError(SENSELESS, dict.fromkeys(mistakes))
    return configs


def options(group: str, folders: Sequence[Path] = (CONF,)) -> list[str]:
    return sorted({file.stem for folder in folders for file in (folder / group).glob("*.yaml")})


def _composed(words: Sequence[str]) -> list[tuple[DictConfig, dict[str, str]]]:
    """Every job, with the file that each group of one choice came from."""
    composed: list[tuple[DictConfig, dict[str, str]]] = []

    def collect(job: DictConfig) -> None:
        hydras = job.hydra if "hydra" in job else HydraConfig.get()
        choices = {str(group): str(name) for group, name in hydras.runtime.choices.items()}
        composed.append((job, choices))

    with _hydra_words(words):
        main = hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")
        try:
            main(collect)()
        except _MISTAKES as error:
            raise ConfigError(SENSELESS, [_one_line(error)]) from None
    return composed


def _checked(composed: DictConfig, folders: Sequence[Path], choices: Mapping[str, str]) -> Config:
    ours = OmegaConf.masked_copy(composed, [str(key) for key in composed if key != "hydra"])
    try:
        raw: Any = OmegaConf.to_container(ours, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        raise ConfigError(SENSELESS, [_one_line(error)]) from None
    # Of what is wrong in it, messages quote the text.
    discretion.hide(raw, _names_of_secrets(raw))
    return checking.load(raw, ConfFiles(folders=tuple(folders), choices=choices))


def _names_of_secrets(raw: Mapping[str, Any]) -> list[str]:
    """Nobody has checked yet what stands there."""
    said = raw.get("secrets")
    return [name for name in said if isinstance(name, str)] if isinstance(said, list) else []


def _chosen(overrides: Sequence[Override], folders: Sequence[Path]) -> dict[str, list[str]]:
    """The entries of each axis: what the words say, or else the suite. The last word counts."""
    said = {each.key_or_group: _names(each.value()) for each in overrides}
    chosen: dict[str, list[str]] = {}
    for suite in said.get("suite", []):
        for axis, names in _of_suite(suite, folders):
            chosen.setdefault(axis, []).extend(names)
    return chosen | {axis: said[axis] for axis in AXES if axis in said}


def _of_suite(name: str, folders: Sequence[Path]) -> Iterator[tuple[str, list[str]]]:
    files = [folder / "suite" / f"{name}.yaml" for folder in folders]
    text = next((file.read_text() for file in files if file.is_file()), "")
    for entry in (yaml.safe_load(text) or {}).get("defaults", ()):
        for key, value in entry.items() if isinstance(entry, dict) else ():
            axis = str(key).removeprefix("override /")
            if axis in AXES:
                yield axis, _names(value)


def _lost(chosen: Mapping[str, Sequence[str]], configs: Sequence[Config]) -> Iterator[str]:
    """A file that was chosen and describes nothing would make its cells vanish without a word."""
    for axis, names in chosen.items():
        for name in names:
            if configs and not any(name in getattr(config, axis) for config in configs):
                yield (
                    f"{axis}/{name}.yaml does not describe {axis}.{name}: it is empty, "
                    f"or lacks the line `# @package {axis}.{name}`"
                )


@contextlib.contextmanager
def _hydra_words(words: Sequence[str]) -> Iterator[None]:
    """Hydra reads sys.argv, writes its sweep file somewhere, and exits on errors unless told."""
    before = sys.argv, dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="vllm-matrix-") as scratch:
        sys.argv = ["vllm-matrix run", *words]
        os.environ["HYDRA_FULL_ERROR"] = "1"
        os.environ["MATRIX_SWEEP_DIR"] = scratch
        try:
            yield
        finally:
            sys.argv = before[0]
            os.environ.clear()
            os.environ.update(before[1])


def _parsed(words: Sequence[str]) -> list[Override]:
    mistakes: list[str] = []
    parsed: list[Override] = []
    for word in words:
        try:
            parsed += OverridesParser.create().parse_overrides([word])
        except HydraException as error:
            mistakes.append(f"{word}: {_one_line(error)}")
    if mistakes:
        raise ConfigError("not every word is an override (KEY=VALUE):", mistakes)
    return parsed


def _understood(word: str, overrides: Sequence[Override], folders: Sequence[Path]) -> str:
    """
    The word as Hydra should see it.

    Keys go in with `++`, so that our own check, which knows what is allowed,
    judges them; choices that do not exist are left out, so that the rest is checked too.
    """
    override = next((each for each in overrides if each.input_line == word), None)
    if override is None or override.key_or_group.startswith("hydra"):
        return word
    if override.key_or_group not in GROUPS:
        return word if override.type is OverrideType.DEL else f"++{word.lstrip('+')}"
    if not [*_unknown_choices(override, folders)]:
        return word
    allowed = options(override.key_or_group, folders)
    known = [name for name in _names(override.value()) if name in allowed]
    return f"{override.key_or_group}=[{','.join(known)}]" if known else ""


def _unknown_choices(override: Override, folders: Sequence[Path]) -> Iterator[str]:
    group = override.key_or_group
    if group not in GROUPS or override.type is OverrideType.DEL:
        return
    allowed = options(group, folders)
    for name in _names(override.value()):
        if name not in allowed:
            yield (
                f"{group}: there is no conf/{group}/{name}.yaml; "
                f"allowed: {', '.join(allowed)}.{nearest(name, allowed)}"
            )


def _names(value: Any) -> list[str]:
    match value:
        case None:
            return []
        case list():
            return [str(name) for name in value]
        case ChoiceSweep():
            return [name for part in value.list for name in _names(part)]
        case _:
            return [str(value)]


def _one_line(error: BaseException) -> str:
    """Hydra wraps some errors in one that says nothing."""
    said = " ".join(str(error).split())
    cause = error.__cause__
    return said or (_one_line(cause) if cause else type(error).__name__)
