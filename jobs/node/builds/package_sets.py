"""The optional packages of emulated engines. AMD hosts see no flashinfer: one folder per set."""

from pathlib import Path
from typing import Any

from jobs.contract.builds import BuildSpec
from jobs.contract.emulation import PackageSet
from jobs.contract.terms import EngineMode
from jobs.node.builds import digests, folders, interpreter, store, uv
from jobs.node.builds.uv import Say


def ready(spec: BuildSpec, python: str, cache: Path, say: Say) -> tuple[dict[str, str], bool]:
    """Vendor to the folder of what is installed for it, and whether all were there before."""
    if spec.engine_mode is EngineMode.REAL:
        return {}, True
    found = {
        vendor: _ready(packages, python, cache, say)
        for vendor, packages in spec.packages.items()
        if packages.installed
    }
    sites = {vendor: str(site) for vendor, (site, _) in found.items()}
    return sites, all(reused for _, reused in found.values())


def _ready(packages: PackageSet, python: str, cache: Path, say: Say) -> tuple[Path, bool]:
    """One folder for the same requirements, whichever builds name them."""
    folder = cache / "packages" / digests.of_packages(packages)[:20]
    site = folder / "site"
    return store.ready(
        folder,
        look=lambda manifest: _look(manifest, site),
        make=lambda lock: _made(packages, python, site, say, lock),
        say=say,
    )


def _look(manifest: dict[str, Any], site: Path) -> Path:
    if folders.count(site) < manifest["files"]:
        raise store.Stale("has lost files")
    return site


def _made(packages: PackageSet, python: str, site: Path, say: Say, lock: int) -> dict[str, Any]:
    title = f"installing packages of {packages.name}"
    uv.unpack(site, packages.installed, title=title, say=say, lock=lock)
    interpreter.compile_all(python, site, lock=lock)
    return {"requirements": packages.installed, "files": folders.count(site)}
