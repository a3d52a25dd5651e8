"""What one cell was made of, as files that somebody else can be given."""

import gzip
import hashlib
import io
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from jobs.contract.builds import ProvisionedBuild
from orchestrator.asked import digests
from orchestrator.asked.cell_requests import engine_args
from orchestrator.asked.cells import Cell
from orchestrator.errors import ConfigError

INIT = "vllm/__init__.py"
DELETED = "deleted"
_LEFT_OUT = {"__pycache__", "models"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Ingredients:
    models: Mapping[str, str]
    """Files of the shipped configurations that the cell names: `models/llama/config.json`."""

    changed: Mapping[str, bytes]
    """What a checkout and patches over it changed in the build, `vllm/...`, and vLLM's own root."""


def gather(cell: Cell, build: ProvisionedBuild | None) -> Ingredients:
    """Raises ConfigError if files of a checkout are no longer as they were."""
    changed = {} if cell.build.checkout is None else dict(_changed(cell, build))
    return Ingredients(models=dict(_models(cell)), changed=changed)


def archive(files: Mapping[str, bytes]) -> bytes:
    """A tar.gz of them; equal files give equal bytes."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as tar,
    ):
        for path, content in sorted(files.items()):
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def our_code() -> dict[str, bytes]:
    """All that runs on a node, without models: `jobs/...`."""
    root = digests.PROBE_CODE
    return {
        str(file.relative_to(root.parent)): file.read_bytes()
        for file in sorted(root.rglob("*"))
        if file.is_file() and not _LEFT_OUT & {*file.relative_to(root).parts}
    }


def _models(cell: Cell) -> Iterator[tuple[str, str]]:
    args = engine_args(cell)
    named = [args["model"], (args.get("speculative_config") or {}).get("model")]
    for name in named:
        if isinstance(name, str) and name.startswith(digests.SHIPPED):
            own = name.removeprefix(digests.SHIPPED)
            for file in sorted((digests.MODELS / own).iterdir()):
                yield f"models/{own}/{file.name}", file.read_text()


def _changed(cell: Cell, build: ProvisionedBuild | None) -> Iterator[tuple[str, bytes]]:
    """From the build as it lies on this machine, or from the checkout, by their hashes."""
    if build is None:
        raise ConfigError(f"the build of {cell.id} was never made ready: its files are not known")
    roots = [*map(Path, build.path_entries), Path(str(cell.build.checkout))]
    roots = [root for root in roots if (root / INIT).is_file()]
    if not roots:
        raise ConfigError(f"neither the build of {cell.id} nor {cell.build.checkout} lies here")
    wrong: list[str] = []
    for path, wanted in build.sources.items():
        if wanted == DELETED:
            wrong.append(f"{path} was deleted, which no script of ours can do")
            continue
        candidates = (root / path for root in roots if (root / path).is_file())
        contents = (candidate.read_bytes() for candidate in candidates)
        found = next((c for c in contents if hashlib.sha256(c).hexdigest() == wanted), None)
        if found is None:
            wrong.append(f"{path} with SHA-256 {wanted[:12]} lies in none of {_listed(roots)}")
        else:
            yield path, found
    if INIT not in build.sources:
        yield INIT, (roots[0] / INIT).read_bytes()
    if wrong:
        raise ConfigError(
            f"the files of build {cell.build.name} are no longer as they were:", wrong
        )


def _listed(roots: list[Path]) -> str:
    return ", ".join(map(str, roots))
