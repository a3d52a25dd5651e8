"""Versions of vLLM in a row, each as a build that a cell can ask: releases, or commits."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion
from packaging.version import Version as Release

from orchestrator.asked import commits
from orchestrator.asked.commits import Commit
from orchestrator.asked.conf_files import nearest
from orchestrator.asked.config import Build, Config
from orchestrator.errors import ConfigError

SENSELESS = "there is nothing to search between:"


@dataclass(frozen=True, kw_only=True, slots=True)
class Version:
    build: str
    """The last part of its cell's id."""

    title: str
    """For people: what it is, beside the build's name."""

    made: Callable[[], Build]
    """The build, once its files lie ready."""

    is_described: bool = True
    """By a file of conf/."""

    is_merge: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Lineage:
    versions: tuple[Version, ...]
    """From the oldest on."""

    good_is_older: bool


def with_builds(config: Config, versions: Iterable[Version]) -> Config:
    """The same, of these builds."""
    return dataclasses.replace(config, build={each.build: each.made() for each in versions})


def words(config: Config, versions: Iterable[Version]) -> list[str]:
    """That choose these builds of the configuration."""
    named = {each.build: each.is_described for each in versions}
    described = ",".join(name for name, is_described in named.items() if is_described)
    made = (name for name, is_described in named.items() if not is_described)
    return [
        f"build=[{described}]",
        *(f"build.{name}={_shown(_said(config.build[name]))}" for name in made),
    ]


def releases(good: str, bad: str, builds: Mapping[str, Build], *, on_cpu: bool) -> Lineage:
    """*good* and *bad* are builds or their versions; between are those of the same kind."""
    known = {name: build for name, build in builds.items() if _release(build)}
    of_kind = {name: build for name, build in known.items() if _is_for_cpu(build) is on_cpu}
    mistakes: list[str] = []
    ends: list[str] = []
    for name in (good, bad):
        found = name if name in known else _of_version(name, of_kind)
        if found is None:
            mistakes.append(_no_release(name, builds, known))
        else:
            ends.append(found)
    if mistakes:
        raise ConfigError(SENSELESS, mistakes)
    old, new = sorted(ends, key=lambda name: _version(known[name]))
    if _version(known[old]) == _version(known[new]):
        raise ConfigError(SENSELESS, [f"{good} and {bad} are the same release"])
    kind = known[old].distribution, known[old].torch_backend
    between = {
        _version(build): name
        for name, build in sorted(known.items(), reverse=True)
        if (build.distribution, build.torch_backend) == kind
        and _version(known[old]) < _version(build) < _version(known[new])
    }
    names = [old, *(between[version] for version in sorted(between)), new]
    versions = (
        Version(build=name, title=str(known[name].release), made=partial(known.__getitem__, name))
        for name in names
    )
    return Lineage(versions=tuple(versions), good_is_older=old == ends[0])


def of_commits(good: str, bad: str, path: str, base: tuple[str, Build], laid: Path) -> Lineage:
    """Of the checkout at *path*, over the build *base*; their files are laid below *laid*."""
    checkout = commits.checkout(path)
    ends = [checkout.commit(good), checkout.commit(bad)]
    good_is_older = checkout.is_ancestor(*ends)
    found = checkout.between(*(ends if good_is_older else reversed(ends)))
    name, build = base

    def version(commit: Commit) -> Version:
        def made() -> Build:
            return dataclasses.replace(build, checkout=str(checkout.lay(commit, laid)))

        return Version(
            build=f"{name}-{commit.short}",
            title=f"{commit.date} {commit.subject}",
            made=made,
            is_described=False,
            is_merge=commit.is_merge,
        )

    return Lineage(versions=tuple(map(version, found)), good_is_older=good_is_older)


def _release(build: Build) -> bool:
    """Whether it is a release as it was published."""
    if build.release is None or build.patches or build.checkout:
        return False
    try:
        return bool(Release(build.release))
    except InvalidVersion:
        return False


def _is_for_cpu(build: Build) -> bool:
    return build.torch_backend == "cpu"


def _version(build: Build) -> Release:
    return Release(str(build.release))


def _of_version(text: str, builds: Mapping[str, Build]) -> str | None:
    try:
        wanted = Release(text)
    except InvalidVersion:
        return None
    return next((name for name in sorted(builds) if _version(builds[name]) == wanted), None)


def _no_release(name: str, builds: Mapping[str, Build], known: Mapping[str, Build]) -> str:
    if name in builds:
        return (
            f"{name} is no release as it was published; allowed: {', '.join(sorted(known))}. "
            "To search commits, add --checkout PATH"
        )
    versions = [str(build.release) for build in known.values()]
    allowed = ", ".join(f"{each} ({known[each].release})" for each in sorted(known))
    return (
        f"there is no release {name} in conf/build; allowed: {allowed}."
        f"{nearest(name, [*known, *versions])} To search commits, add --checkout PATH"
    )


def _said(build: Build) -> dict[str, Any]:
    """The keys that are not as they are anyway."""
    return {
        each.name: value
        for each in dataclasses.fields(build)
        if (value := getattr(build, each.name)) != each.default
    }


def _shown(value: Any) -> str:
    """As Hydra reads it on a command line."""
    match value:
        case None:
            return "null"
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case dict():
            return "{" + ",".join(_pairs(value)) + "}"
        case list() | tuple():
            return "[" + ",".join(map(_shown, value)) + "]"
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return _shown(dataclasses.asdict(value))
        case _:
            return str(value).lower()


def _pairs(values: Mapping[str, Any]) -> Iterator[str]:
    return (f"{key}:{_shown(value)}" for key, value in values.items())
