"""
Files that a build names and that may lie on its user's machine alone: a wheel, a checkout.

They are known by their content. A node that has it, under the same path or because it was
sent before, needs nothing; to any other it is sent, and stays in the cache.
"""

import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal

from jobs.contract.builds import BuildSpec
from jobs.node.builds import checkouts, digests, space, store, wheels
from jobs.node.builds.errors import BuildError, BuildNodeError, BuildSpecError

MIB = 2**20
CHUNK = 64 * MIB
"""Bytes that are on their way at a time."""

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Original:
    key: Literal["wheel", "checkout"]
    """Of the build that names it."""

    path: str
    """On the user's machine, from the root."""

    sha256: str
    mib: float


def originals(spec: BuildSpec) -> tuple[Original, ...]:
    """
    Those that this machine has. Raises BuildError if one is not what its key says.

    What is not here may be on the nodes, which then have to find it themselves.
    """
    here: list[Original] = []
    try:
        if spec.wheel is not None and _exists(spec.wheel):
            here.append(_wheel(wheels.find(spec.wheel)))
        if spec.checkout is not None and _exists(spec.checkout):
            here.append(_checkout(checkouts.find(spec.checkout)))
    except OSError as error:
        raise BuildSpecError(f"{error.filename}: {error.strerror}") from error
    return tuple(here)


def chunks(original: Original) -> Iterator[bytes]:
    """What has to be sent of it."""
    with _opened(original) as file:
        while chunk := file.read(CHUNK):
            yield chunk


def found(original: Original, cache: Path, say: Say) -> Path | None:
    """Where this node has it, if it does."""
    if _content(original, Path(original.path)) == original.sha256:
        return Path(original.path)
    return store.found(_folder(original, cache), look=partial(_look, original), say=say)


def kept(original: Original, content: Iterable[bytes], cache: Path, say: Say) -> Path:
    """Where it is from now on. Raises BuildNodeError if something else has arrived."""
    folder = _folder(original, cache)
    path, _ = store.ready(
        folder,
        look=partial(_look, original),
        make=lambda _: _arrived(original, content, folder, say),
        say=say,
    )
    return path


def _exists(name: str) -> bool:
    return Path(name).expanduser().exists()


def _wheel(path: Path) -> Original:
    size = path.stat().st_size
    return Original(key="wheel", path=str(path), sha256=digests.of_file(path), mib=size / MIB)


def _checkout(root: Path) -> Original:
    size = sum((root / path).stat().st_size for path in checkouts.files(root))
    digest = digests.of_checkout(root)
    return Original(key="checkout", path=str(root), sha256=digest, mib=size / MIB)


@contextmanager
def _opened(original: Original) -> Iterator[IO[bytes]]:
    if original.key == "wheel":
        with Path(original.path).open("rb") as wheel:
            yield wheel
        return
    with tempfile.TemporaryFile() as archive:
        _pack(Path(original.path), archive)
        archive.seek(0)
        yield archive


def _pack(root: Path, archive: IO[bytes]) -> None:
    with zipfile.ZipFile(archive, "w") as packed:
        for path in checkouts.files(root):
            # Without the file's time, which may be one that no archive can hold.
            entry = zipfile.ZipInfo(path)
            packed.writestr(entry, (root / path).read_bytes(), zipfile.ZIP_DEFLATED, 1)


def _folder(original: Original, cache: Path) -> Path:
    return cache / "shipped" / original.sha256


def _content(original: Original, path: Path) -> str | None:
    try:
        return digests.of_file(path) if original.key == "wheel" else digests.of_checkout(path)
    except (OSError, BuildError):
        return None


def _look(original: Original, manifest: dict[str, Any]) -> Path:
    path = Path(manifest["path"])
    if _content(original, path) != original.sha256:
        raise store.Stale("was edited in place")
    return path


def _arrived(
    original: Original, content: Iterable[bytes], folder: Path, say: Say
) -> dict[str, Any]:
    path = folder / Path(original.path).name
    say(f"receiving {path.name}")
    space.require(folder, 2 * original.mib / 1024)
    archive = path if original.key == "wheel" else folder / "archive"
    with archive.open("wb") as file:
        file.writelines(content)
    if archive is not path:
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(path)
        archive.unlink()
    if _content(original, path) != original.sha256:
        raise BuildNodeError(
            f"{original.path} did not arrive as it was when the run began: "
            f"leave it unchanged while builds are made, and run the same command again"
        )
    return {"path": str(path), "original": original.path}
