"""A vLLM to start engines with, and processes that have imported it already."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.node.builds.provision import provision
from orchestrator.asked.checking import build_specs
from orchestrator.asked.compose import compose
from tests.engine.warm_parent import SITE, WarmParent


@pytest.fixture(scope="session")
def vllm_python() -> Path:
    """The interpreter of conf/build/v0_32, made ready in the product's own cache."""
    [config] = compose(["build=[v0_32]"])
    spec = build_specs(config)["v0_32"]
    return Path(provision(spec, Path(config.cache), print).python)


@pytest.fixture(scope="session")
def warm(vllm_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmParent]:
    with WarmParent.started(vllm_python, tmp_path_factory.mktemp("cells"), env={}) as parent:
        yield parent


@pytest.fixture(scope="session")
def warm_v2(vllm_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmParent]:
    """With the V2 model runner, whose kernels Triton's interpreter runs."""
    env = {"VLLM_USE_V2_MODEL_RUNNER": "1", "TRITON_INTERPRET": "1", "PYTHONPATH": str(SITE)}
    with WarmParent.started(vllm_python, tmp_path_factory.mktemp("cells"), env=env) as parent:
        yield parent
