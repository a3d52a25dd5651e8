"""The door between conf/ and the rest: a Config that makes sense, or every mistake at once."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pydantic

from jobs.contract.builds import BuildSpec, Patch
from jobs.contract.emulation import PackageSet
from jobs.contract.terms import EngineMode
from orchestrator.asked import contradictions
from orchestrator.asked.conf_files import ConfFiles, nearest
from orchestrator.asked.config import EMULATED_VENDORS, Build, Config
from orchestrator.errors import ConfigError

SENSELESS = "the configuration does not make sense:"

UNKNOWN = object()
"""Stands where a value could not be told, which is a mistake that was said already."""

KEY = "[key]"
"""As pydantic calls a key that is wrong itself, behind that key."""

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
        mistakes = [_explain(mistake, files) for mistake in known]
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
        evidence=_evidence(config, files),
        # That of a home is each node's own.
        cache=config.cache if config.cache.startswith("~") else str(Path(config.cache).absolute()),
    )


def _evidence(config: Config, files: ConfFiles) -> tuple[str, ...]:
    """The folder beside conf/, if there is one and nothing else was said."""
    if config.evidence is not None:
        return tuple(str(Path(path).expanduser().absolute()) for path in config.evidence)
    beside = files.folders[0].parent / "evidence"
    return (str(beside),) if beside.is_dir() else ()


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


def _explain(mistake: Any, files: ConfFiles) -> str:
    """File, key, what is wrong, what is allowed and the nearest name, in one line."""
    path = [str(part) for part in mistake["loc"]]
    place = files.place(*(path[:-2] if path[-1] == KEY else path))
    match mistake["type"]:
        case "unexpected_keyword_argument":
            allowed = _allowed_keys(path[:-1])
            return (
                f'{place}: there is no key "{path[-1]}"; allowed: {", ".join(allowed)}.'
                f"{nearest(path[-1], allowed)}"
            )
        case "missing" | "missing_argument":
            return f"{place}: is missing"
        case "literal_error" | "enum":
            expected = mistake["ctx"]["expected"]
            allowed = [word.strip(" '") for word in expected.replace(" or ", ",").split(",")]
            value = str(mistake["input"])
            return f'{place}: "{value}" is not one of {expected}.{nearest(value, allowed)}'
        case _:
            said = mistake["msg"].removeprefix("Value error, ")
            return f"{place}: {said}, but it is {mistake['input']!r}"


def _allowed_keys(path: Sequence[str]) -> list[str]:
    """The keys of the class that describes *path*, found by walking the annotations."""
    schema = _adapter.json_schema()
    place: dict[str, Any] = schema
    for part in path:
        place = _inside(_resolve(place, schema), part)
    return sorted(_resolve(place, schema).get("properties", {}))


def _resolve(place: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in place:
        return _resolve(schema["$defs"][place["$ref"].rsplit("/", 1)[-1]], schema)
    for option in place.get("anyOf", ()):
        if option.get("type") != "null":
            return _resolve(option, schema)
    return place


def _inside(place: dict[str, Any], part: str) -> dict[str, Any]:
    if part in (properties := place.get("properties", {})):
        found: dict[str, Any] = properties[part]
        return found
    by_pattern = [*place.get("patternProperties", {}).values()]
    items: Any = (
        place.get("items") or place.get("additionalProperties") or next(iter(by_pattern), {})
    )
    return items if isinstance(items, dict) else {}
