"""The search for a commit, with real engines on an emulated card: a fix is lost among other commits."""

from pathlib import Path

import pytest

from jobs.node import caches
from jobs.node.builds.provision import provision
from orchestrator.asked.checking import build_specs
from orchestrator.asked.compose import compose
from orchestrator.asked.conf_files import CONF
from tests.a_repository import Repository, made
from tests.ray.conftest import StartDriver

pytestmark = [pytest.mark.long, pytest.mark.ray, pytest.mark.engine, pytest.mark.timeout(700)]

BUILD = "v0_32_gpu"
CELL = f"h100-emulated/llama31_8b_eagle3/draft_triton_attn/{BUILD}"
LOST = CONF / "patches" / "draft-attention-backend-reverted.diff"


@pytest.fixture
def vllm(tmp_path: Path) -> Repository:
    """Seven commits over release 0.32.0, of which the fifth undoes the fix, and one does not start."""
    [config] = compose([f"build=[{BUILD}]", "engine_mode=emulated", "suite.check=init"])
    base = provision(build_specs(config)[BUILD], caches.folder(config.cache), print)
    site = next(Path(base.python).parents[1].glob("lib/*/site-packages"))
    [changed] = [line[6:] for line in LOST.read_text().splitlines() if line.startswith("+++ b/")]
    files = {path: (site / path).read_text() for path in ("vllm/__init__.py", changed)}
    repository = made(tmp_path / "vllm")
    repository.commit("as released", files)
    repository.git("tag", "released")
    repository.commit("a new file", {"vllm/new.py": ""})
    repository.commit("a test", {"tests/test_new.py": ""})
    broken = f"{files[changed]}\nraise ImportError('not today')\n"
    repository.commit("half of a change", {changed: broken})
    repository.commit("the other half", {changed: files[changed]})
    repository.git("apply", str(LOST))
    repository.commit("tidy up", {})
    repository.git("tag", "culprit")
    repository.commit("another file", {"vllm/other.py": ""})
    return repository


def test_the_commit_that_lost_the_fix_is_named(vllm: Repository, drive: StartDriver) -> None:
    driver = drive("bisect", "released", "HEAD", CELL, f"--checkout={vllm.root}", patience_s=540)

    assert driver.wait() == 0, driver.output

    short = vllm.git("rev-parse", "culprit")[:10]
    said = " ".join(driver.output.split())
    assert f"{BUILD}-{short} (" in said
    assert "tidy up) made it bad: h100-emulated/llama31_8b_eagle3/draft_triton_attn" in said
    assert "draft.attention_backend TRITON_ATTN: honoured → dropped" in said
    assert len(driver.records()) < 7
    assert not driver.left(10.0)
