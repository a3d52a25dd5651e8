"""The door between conf/ and the rest: a Config that makes sense, or every mistake at once."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pydantic

from jobs.contract.builds import BuildSpec, Patch
from jobs.contract.emulation import PackageSet
from jobs.contract.terms import EngineMode
from orchestrator.asked import contradictions, waiver_file
from orchestrator.asked.conf_files import ConfFiles
from orchestrator.asked.config import EMULATED_VENDORS, Build, Config
from orchestrator.asked.explaining import explain
from orchestrator.asked.policies import Gate
from orchestrator.errors import ConfigError

SENSELESS = "the configuration does not make sense:"

UNKNOWN = object()
"""Stands where a value could not be told, which is a mistake that was said already."""

_adapter = pydantic.TypeAdapter(Config)


def load(raw: Mapping[str, Any], files: ConfFiles, unresolved: Sequence[str] = ()) -> Config:
    """
    Turn what Hydra composed into a checked Config, or name every mistake in it: *unresolved*
    are those of values that are `UNKNOWN`.

    Paths of patches and of evidence are absolute in the Config.
    """
    others = [*unresolved, *contradictions.find(raw, files)]
    try:
        config = _adapter.validate_python(raw)
    except pydantic.ValidationError as invalid:
        known = [each for each in invalid.errors() if each["input"] is not UNKNOWN]
        mistakes = [explain(mistake, files.place, _adapter) for mistake in known]
        raise ConfigError(SENSELESS, [*mistakes, *others]) from None
    if others:
        raise ConfigError(SENSELESS, others)
    builds = {
        name: replace(build, patches=tuple(str(files.find(p)) for p in build.patches))
        for name, build in config.build.items()
    }
    return replace(
        config,
        build=builds,
        gate=_with_files(config.gate, files),
        evidence=_evidence(config, files),
        # That of a home is each node's own.
        cache=config.cache if config.cache.startswith("~") else str(Path(config.cache).absolute()),
    )


def _with_files(gate: Gate, files: ConfFiles) -> Gate:
    """With the waivers of its files, whatever becomes of these."""
    more = [waiver for name in gate.waiver_files for waiver in waiver_file.read(name, files)[0]]
    return replace(gate, waivers=(*gate.waivers, *more))


def _evidence(config: Config, files: ConfFiles) -> tuple[str, ...]:
    """A folder here, or else beside conf/, if there is one and nothing else was said."""
    if config.evidence is not None:
        return tuple(str(Path(path).expanduser().absolute()) for path in config.evidence)
    folders = (folder / "evidence" for folder in (Path.cwd(), files.folders[0].parent))
    return tuple(str(folder) for folder in folders if folder.is_dir())[:1]


def build_specs(config: Config) -> dict[str, BuildSpec]:
    """The builds with the text of their patches. Patch files were checked by `load`."""
    return {
        name: BuildSpec(
            name=name,
            release=build.release,
            wheel=build.wheel,
            interpreter=build.interpreter,
            checkout=build.checkout,
            distribution=build.distribution,
            torch_backend=build.torch_backend,
            extra_requirements=build.extra_requirements,
            exclude=build.exclude,
            overrides=build.overrides,
            engine_mode=config.engine_mode,
            packages=_packages(build) if config.engine_mode is EngineMode.EMULATED else {},
            patches=tuple(
                Patch(name=Path(patch).name, text=Path(patch).read_text(errors="replace"))
                for patch in build.patches
            ),
        )
        for name, build in config.build.items()
    }


NO_PACKAGES = PackageSet(name="none")


def _packages(build: Build) -> dict[str, PackageSet]:
    """For every vendor whose cards can be emulated: what is chosen must not change the build."""
    return {vendor: build.packages.get(vendor, NO_PACKAGES) for vendor in EMULATED_VENDORS}
