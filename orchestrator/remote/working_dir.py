"""What goes to a cluster: the code that runs there and conf/, and nothing that lies beside them."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orchestrator
from orchestrator.asked.conf_files import CONF, INSTALLED
from orchestrator.errors import ConfigError

HERE = Path(orchestrator.__file__).parents[1]
PACKAGES = ("jobs", "orchestrator")
PLUGIN = "hydra_plugins/vllm_matrix.py"
"""Others have theirs beside it."""

LARGEST_MIB = 20
"""Ray takes 100 MiB, and keeps each in the memory of the head."""

MORE = "conf_more"
"""Where a folder of `--config-dir` goes."""

_LEFT_BEHIND = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")


@contextmanager
def assembled(config_dir: str | None) -> Iterator[Path]:
    """In a folder for the time being. Raises ConfigError if it is too much to send."""
    with tempfile.TemporaryDirectory(prefix="vllm-matrix-") as temporary:
        folder = Path(temporary)
        for name in PACKAGES:
            shutil.copytree(HERE / name, folder / name, ignore=_LEFT_BEHIND)
        (folder / PLUGIN).parent.mkdir()
        shutil.copy(HERE / PLUGIN, folder / PLUGIN)
        if not INSTALLED:
            shutil.copytree(CONF, folder / "conf", ignore=_LEFT_BEHIND)
        if config_dir:
            shutil.copytree(config_dir, folder / MORE, ignore=_LEFT_BEHIND)
        _check_size(folder)
        yield folder


def sent(folder: Path) -> Iterator[Path]:
    """Its files, but for those that are left behind."""
    there = sorted(folder.iterdir())
    left = _LEFT_BEHIND(str(folder), [each.name for each in there])
    for each in there:
        if each.name in left:
            continue
        if each.is_dir():
            yield from sent(each)
        elif each.is_file():
            yield each


def _check_size(folder: Path) -> None:
    sizes = {file: file.stat().st_size / 2**20 for file in folder.rglob("*") if file.is_file()}
    if (mib := sum(sizes.values())) > LARGEST_MIB:
        largest = sorted(sizes, key=lambda file: -sizes[file])[:3]
        raise ConfigError(
            f"{mib:.0f} MiB would go to the cluster, and {LARGEST_MIB} are the most; move what is "
            "no configuration out of conf/. The largest:",
            [f"{file.relative_to(folder)}: {sizes[file]:.1f} MiB" for file in largest],
        )
