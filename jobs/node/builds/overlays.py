"""What a checkout and patches change in a base, as a folder that goes first on PYTHONPATH."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jobs.contract.builds import BuildSpec
from jobs.node.builds import checkouts, digests, patches, store
from jobs.node.builds.bases import Base
from jobs.node.builds.linktree import LinkTree

DELETED = "deleted"


@dataclass(frozen=True, kw_only=True, slots=True)
class Overlay:
    """As it stands in the manifest."""

    digest: str
    site: str
    """The folder that goes on PYTHONPATH."""

    root: str
    package: str
    """Where the `vllm/` of its base lies, and the digest of that."""

    sources: dict[str, str]
    """Changed file to its SHA-256, or `deleted`."""

    skipped: list[str]
    entries: int
    """Files and links, without bytecode."""

    seconds: float


def ready(
    spec: BuildSpec, base: Base, cache: Path, say: Callable[[str], None]
) -> tuple[Overlay, bool]:
    """The overlay, and whether it was there before."""
    digest = digests.of_build(spec, base.digest)
    # A base's folder tells nodes of a shared cache apart; its overlays are kept apart likewise.
    folder = cache / "overlays" / f"{digest[:20]}-{digests.of_text(base.root)[:8]}"
    return store.ready(
        folder,
        look=lambda manifest: _look(manifest, base),
        make=lambda _: asdict(_made(spec, digest, base, folder / "site")),
        say=say,
    )


def _look(manifest: dict[str, Any], base: Base) -> Overlay:
    overlay = Overlay(**manifest)
    if overlay.root != base.root or overlay.package != base.package:
        raise store.Stale("lies over another base")
    tree = LinkTree(root=Path(base.root), site=Path(overlay.site))
    entries = list(tree.entries())
    if len(entries) != overlay.entries or not all(entry.exists() for entry in entries):
        raise store.Stale("has lost files")
    if _hashes(tree, set(overlay.sources)) != overlay.sources:
        raise store.Stale("was edited in place")
    return overlay


def _made(spec: BuildSpec, digest: str, base: Base, site: Path) -> Overlay:
    started = time.monotonic()
    tree = LinkTree(root=Path(base.root), site=site)
    site.mkdir()
    changed = set() if spec.checkout is None else _lay(checkouts.find(spec.checkout), tree)
    applied = patches.apply(spec, tree, base.vllm_version)
    return Overlay(
        digest=digest,
        site=str(site),
        root=base.root,
        package=base.package,
        sources=_hashes(tree, changed | applied.changed),
        skipped=list(applied.skipped),
        entries=len(list(tree.entries())),
        seconds=round(time.monotonic() - started, 3),
    )


def _lay(checkout: Path, tree: LinkTree) -> set[str]:
    """Copy what the checkout has otherwise; returns the paths."""
    tree.own("vllm/__init__.py")
    changed = set()
    for path in checkouts.files(checkout):
        theirs = checkout / path
        if digests.of_file(theirs) != tree.sha256(path):
            mine = tree.own(path)
            mine.parent.mkdir(parents=True, exist_ok=True)
            mine.write_bytes(theirs.read_bytes())
            changed.add(path)
    return changed


def _hashes(tree: LinkTree, paths: set[str]) -> dict[str, str]:
    return {path: tree.sha256(path) or DELETED for path in sorted(paths)}
