"""The door between conf/ and the rest: a Config that makes sense, or every mistake at once."""

import contextlib
import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pydantic

from jobs.contract import BuildSpec, Check, EngineMode, PackageSet, Patch
from orchestrator.classify import taxonomy
from orchestrator.config import (
    EMULATED,
    EMULATED_KEYS,
    EMULATED_VENDORS,
    Build,
    Config,
    Hardware,
    Model,
    Suite,
)
from orchestrator.errors import ConfigError

Entry = TypeVar("Entry")

_adapter = pydantic.TypeAdapter(Config)


def load(raw: Mapping[str, Any], folders: Sequence[Path]) -> Config:
    """
    Turn what Hydra composed into a checked Config, or name every mistake in it.

    *folders* are conf/ and what `--config-dir` adds; patches are found in them, and
    have absolute paths in the Config.
    """
    try:
        config = _adapter.validate_python(raw)
    except pydantic.ValidationError as invalid:
        mistakes = [_explain(mistake, raw, folders) for mistake in invalid.errors()]
        mistakes += _contradictions(raw, folders)
        raise ConfigError("the configuration does not make sense:", mistakes) from None
    mistakes = [*_contradictions(raw, folders), *_unknown_categories(config), *_lost(config)]
    if mistakes:
        raise ConfigError("the configuration does not make sense:", mistakes)
    builds = {
        name: replace(build, patches=tuple(str(_find(p, folders)) for p in build.patches))
        for name, build in config.build.items()
    }
    return replace(
        config,
        build=builds,
        evidence=_evidence(config, folders),
        cache=str(Path(config.cache).expanduser().absolute()),
    )


def _evidence(config: Config, folders: Sequence[Path]) -> tuple[str, ...]:
    """The folder beside conf/, if there is one and nothing else was said."""
    if config.evidence is not None:
        return tuple(str(Path(path).expanduser().absolute()) for path in config.evidence)
    beside = folders[0].parent / "evidence"
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


def nearest(word: str, allowed: Sequence[str]) -> str:
    """` Did you mean "x"?`, or nothing if nothing is near."""
    matches = difflib.get_close_matches(word, allowed, n=1)
    return f' Did you mean "{matches[0]}"?' if matches else ""


def _explain(mistake: Any, raw: Mapping[str, Any], folders: Sequence[Path]) -> str:
    """File, key, what is wrong, what is allowed and the nearest name, in one line."""
    path = [str(part) for part in mistake["loc"]]
    place = f"{_file_of(path, raw, folders)}{'.'.join(path)}"
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
            return f"{place}: {mistake['msg']}, but it is {mistake['input']!r}"


def _file_of(path: Sequence[str], raw: Mapping[str, Any], folders: Sequence[Path]) -> str:
    """The file that most likely holds the key, or nothing when it came from elsewhere."""
    group = path[0]
    if group in {"hardware", "model", "backend", "build"} and len(path) > 1:
        name = path[1]
    elif group == "suite" and isinstance(raw.get("suite"), Mapping):
        name = str(raw["suite"].get("name"))
    else:
        return ""
    found = _find(f"{group}/{name}.yaml", folders)
    return f"{found.parents[1].name}/{group}/{name}.yaml: " if found else ""


def _find(name: str, folders: Sequence[Path]) -> Path | None:
    """The first of *folders* that has it; an absolute name is itself."""
    return next((folder / name for folder in folders if (folder / name).is_file()), None)


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


def _contradictions(raw: Mapping[str, Any], folders: Sequence[Path]) -> Iterator[str]:
    """Mistakes that no single key shows, of the entries that are sound otherwise."""
    for name, build in _sound(pydantic.TypeAdapter(Build), raw.get("build")):
        yield from _of_build(f"conf/build/{name}.yaml: build.{name}", build, folders)
    for name, model in _sound(pydantic.TypeAdapter(Model), raw.get("model")):
        yield from _of_model(f"conf/model/{name}.yaml: model.{name}", model)
    for name, hardware in _sound(pydantic.TypeAdapter(Hardware), raw.get("hardware")):
        yield from _of_hardware(f"conf/hardware/{name}.yaml: hardware.{name}", hardware)
    for _, suite in _sound(pydantic.TypeAdapter(Suite), {"suite": raw.get("suite")}):
        yield from _of_proof(suite, sorted(raw.get("build") or ()))
        yield from _of_check(suite, raw.get("engine_mode"))


def _sound(adapter: pydantic.TypeAdapter[Entry], entries: Any) -> Iterator[tuple[str, Entry]]:
    for name, entry in entries.items() if isinstance(entries, Mapping) else ():
        with contextlib.suppress(pydantic.ValidationError):
            yield str(name), adapter.validate_python(entry)


def _unknown_categories(config: Config) -> Iterator[str]:
    for number, waiver in enumerate(config.gate.waivers):
        yield from _of_category(f"gate.waivers.{number}.category", waiver.category)
    for number, rule in enumerate(config.suite.expectations):
        yield from _of_category(
            f"suite.expectations.{number}.expect.category", rule.expect.category
        )


def _lost(config: Config) -> Iterator[str]:
    for path in config.evidence or ():
        if not Path(path).expanduser().exists():
            yield f"evidence: there is no {path}"


def _of_category(place: str, category: str | None) -> Iterator[str]:
    known = sorted(taxonomy().categories)
    if category is not None and category not in known:
        yield (
            f'{place}: there is no category "{category}"; allowed: {", ".join(known)}.'
            f"{nearest(category, known)}"
        )


def _of_build(place: str, build: Build, folders: Sequence[Path]) -> Iterator[str]:
    origins = [o for o in ("release", "wheel", "interpreter") if getattr(build, o) is not None]
    if len(origins) != 1:
        yield (
            f"{place}: needs exactly one of release, wheel, interpreter, "
            f"but has {' and '.join(origins) or 'none'}"
        )
    for patch in build.patches:
        if _find(patch, folders) is None:
            looked = ", ".join(map(str, folders))
            yield f"{place}.patches: there is no file {patch} (looked in {looked})"
    for origin in ("wheel", "interpreter", "checkout"):
        if (path := getattr(build, origin)) is not None and not Path(path).exists():
            yield f"{place}.{origin}: there is no {path}"


def _of_hardware(place: str, hardware: Hardware) -> Iterator[str]:
    if place.endswith(EMULATED):
        yield f'{place}: a name that ends with "{EMULATED}" would look like an emulated card'
    if EngineMode.EMULATED not in hardware.engine_modes:
        return
    if hardware.vendor not in EMULATED_VENDORS:
        vendors = " and ".join(EMULATED_VENDORS)
        yield f"{place}.engine_modes: only cards of {vendors} can be emulated"
    elif missing := [key for key in EMULATED_KEYS if getattr(hardware, key) is None]:
        yield f"{place}: can't be emulated without {', '.join(missing)}"


def _of_check(suite: Suite, engine_mode: Any) -> Iterator[str]:
    if engine_mode == EngineMode.EMULATED and suite.check is not Check.INIT:
        yield f"suite.check: emulated engines can't {suite.check}: set suite.check=init"


def _of_proof(suite: Suite, builds: Sequence[str]) -> Iterator[str]:
    for build in dict.fromkeys(suite.proof.builds if suite.proof else ()):
        if build not in builds:
            yield (
                f"suite.proof: there is no build {build} among those chosen "
                f"({', '.join(builds) or 'none'}).{nearest(build, builds)}"
            )


def _of_model(place: str, model: Model) -> Iterator[str]:
    path = Path(model.path)
    if model.path.startswith(".") or (path.is_dir() and not path.is_absolute()):
        yield (
            f"{place}.path: {model.path} must be absolute, since a cell runs in a folder of its"
            f" own: {path.resolve()}"
        )
