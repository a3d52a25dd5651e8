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
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from orchestrator import discretion
from orchestrator.asked import checking
from orchestrator.asked.checking import SENSELESS, UNKNOWN
from orchestrator.asked.conf_files import AXES, CONF, ConfFiles, nearest
from orchestrator.asked.config import Config
from orchestrator.errors import ConfigError

_MISTAKES = (HydraException, OmegaConfBaseException, yaml.YAMLError, ValueError)

GROUPS = (*AXES, "suite", "gate", "cluster")

_Job = tuple[DictConfig, dict[str, str]]


def compose(words: Sequence[str]) -> list[Config]:
    """
    Every configuration that *words* ask for: one, or with `-m` one per job.

    Raises ConfigError with all mistakes of all of them. Returns none where Hydra
    only had to answer (`--help`, `--cfg job`, `--info`).
    """
    more = config_dir(words)
    folders = [CONF, *([Path(more)] if more else [])]
    overrides = _parsed(get_args_parser().parse_args(words).overrides)
    unknown = [mistake for each in overrides for mistake in _unknown_choices(each, folders)]
    understood = [known for word in words if (known := _understood(word, overrides, folders))]
    configs: list[Config] = []
    jobs, mistakes = _composed_as_far_as_possible(understood)
    for job, choices in jobs:
        try:
            configs.append(_checked(job, folders, choices))
        except ConfigError as error:
            mistakes += error.mistakes
    mistakes += unknown or _lost(_chosen(overrides, folders), configs)
    if mistakes:
        raise ConfigError(SENSELESS, dict.fromkeys(mistakes))
    return configs


def config_dir(words: Sequence[str]) -> str | None:
    """The folder that the words add to conf/."""
    more = get_args_parser().parse_args(list(words)).config_dir
    return None if more is None else str(more)


def options(group: str, folders: Sequence[Path] = (CONF,)) -> list[str]:
    return sorted({file.stem for folder in folders for file in (folder / group).glob("*.yaml")})


def _composed_as_far_as_possible(words: Sequence[str]) -> tuple[list[_Job], list[str]]:
    """Without the words that Hydra can't make anything of, and what is wrong with each."""
    try:
        return _composed(words), []
    except ConfigError:
        mistakes: list[str] = []
        fitting = [word for word in words if not word.startswith(("++", "~"))]
        for word in [word for word in words if word not in fitting]:
            try:
                _composed([*fitting, word])
                fitting.append(word)
            except ConfigError as error:
                mistakes += [each.replace(word, word.lstrip("+")) for each in error.mistakes]
        # What is wrong with the files themselves is raised here.
        return _composed(fitting), mistakes


def _composed(words: Sequence[str]) -> list[_Job]:
    """Every job, with the file that each group of one choice came from."""
    composed: list[_Job] = []

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
    unresolved: list[str] = []
    raw = _resolved(ours, unresolved)
    # Of what is wrong in it, messages quote the text.
    discretion.hide(raw, _names_of_secrets(raw))
    return checking.load(raw, ConfFiles(folders=tuple(folders), choices=choices), unresolved)


def _resolved(part: Any, mistakes: list[str]) -> Any:
    """As plain data, with `UNKNOWN` for each value that can't be told."""
    if isinstance(part, DictConfig):
        return {key: _resolved(_value(part, key, mistakes), mistakes) for key in part}
    if isinstance(part, ListConfig):
        return [_resolved(_value(part, n, mistakes), mistakes) for n in range(len(part))]
    return part


def _value(part: Any, key: Any, mistakes: list[str]) -> Any:
    try:
        return part[key]
    except OmegaConfBaseException as error:
        mistakes.append(_one_line(error))
        return UNKNOWN


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
    if override.value() is None:
        yield f"{group}: null is no choice; allowed: {', '.join(allowed)}."
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
    """Hydra wraps some errors in one that says nothing, or not why."""
    said = " ".join(str(error).split())
    why = _one_line(error.__cause__) if error.__cause__ else ""
    if why in said:
        return said or type(error).__name__
    return f"{said}: {why}" if said else why
