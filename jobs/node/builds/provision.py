"""Makes a build ready on this node."""

import dataclasses
import errno
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from jobs.contract.builds import BuildSpec, ProvisionedBuild
from jobs.contract.terms import EngineMode
from jobs.node import caches
from jobs.node.builds import bases, checkouts, digests, overlays, package_sets, patches
from jobs.node.builds.bases import Base
from jobs.node.builds.errors import BuildError, BuildNodeError, BuildSpecError
from jobs.node.builds.overlays import Overlay


def provision(
    spec: BuildSpec, cache: Path, say: Callable[[str], None], *, known_mib: int = 0
) -> ProvisionedBuild:
    """
    Once per node: whoever comes later reuses it. Raises BuildError, which names the build.

    *known_mib* is the size that the build has on another node, if one has it.
    """

    def say_of_build(text: str) -> None:
        say(f"{spec.name}: {text}")

    started = time.monotonic()
    cache = caches.folder(cache).resolve()
    with naming(spec.name, cache):
        _check(spec)
        caches.secure(cache)
        base, base_reused = bases.ready(spec, cache, say_of_build, known_mib=known_mib)
        sites, sites_reused = package_sets.ready(spec, base.python, cache, say_of_build)
        overlay, overlay_reused = _overlay(spec, base, cache, say_of_build)
    seconds = round(time.monotonic() - started, 1)
    reused = base_reused and sites_reused and overlay_reused
    size = f", {base.mib / 1024:.1f} GiB" if base.mib else ""
    say_of_build("reused" if reused else f"ready in {seconds:.0f} s{size}")
    ready = _provisioned(spec, base, overlay)
    return dataclasses.replace(ready, package_folders=sites, seconds=seconds, reused=reused)


@contextmanager
def naming(name: str, cache: Path) -> Iterator[None]:
    """Errors are BuildErrors that begin with the build's name."""
    try:
        yield
    except BuildError as error:
        raise type(error)(f"build {name}: {error.message}") from error
    except OSError as error:
        raise BuildNodeError(f"build {name}: {_os_error(error, cache)}") from error


def digest_of(spec: BuildSpec) -> str:
    """The digest that `provision` gives, where the files and interpreters named are at hand."""
    return digests.digest_of(spec)


def _check(spec: BuildSpec) -> None:
    """What is wrong whatever the base turns out to be: said before minutes go into that."""
    sources = [spec.release, spec.wheel, spec.interpreter]
    if sum(source is not None for source in sources) != 1:
        raise BuildSpecError("must name exactly one of release, wheel and interpreter")
    if spec.engine_mode is EngineMode.EMULATED and spec.interpreter is not None:
        raise BuildSpecError(
            f"emulated engines need another vLLM than {spec.interpreter} has: name the release "
            f"or the wheel that it was installed from, and its files as `checkout` if they differ"
        )
    patches.check(spec)
    if spec.checkout is not None:
        checkouts.find(spec.checkout)


def _overlay(
    spec: BuildSpec, base: Base, cache: Path, say: Callable[[str], None]
) -> tuple[Overlay | None, bool]:
    if spec.checkout is None and not spec.patches:
        return None, True
    return overlays.ready(spec, base, cache, say)


def _provisioned(spec: BuildSpec, base: Base, overlay: Overlay | None) -> ProvisionedBuild:
    return ProvisionedBuild(
        name=spec.name,
        digest=overlay.digest if overlay else digests.of_build(spec, base.digest),
        python=base.python,
        path_entries=(overlay.site,) if overlay else (),
        vllm_version=base.vllm_version,
        torch_version=base.torch_version,
        patches={patch.name: patch.sha256 for patch in spec.patches},
        sources=overlay.sources if overlay else {},
        skipped=tuple(overlay.skipped) if overlay else (),
        engine_mode=spec.engine_mode,
        packages=spec.packages if spec.engine_mode is EngineMode.EMULATED else {},
        operators=base.operators,
        mib=base.mib,
    )


def _os_error(error: OSError, cache: Path) -> str:
    said = f"{error.strerror or error}: {error.filename or cache}"
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return f"{said}; free some space, or set `cache` to another disk"
    if error.errno in {errno.EACCES, errno.EROFS}:
        return f"{said}; the cache {cache} must be writable until the build is in it"
    return said
