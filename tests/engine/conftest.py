"""A vLLM to start engines with, and processes that have imported it already."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.warm_parent import SITE, WarmParent


@pytest.fixture(scope="session")
def vllm_python() -> Path:
    """The interpreter of a build that runs on this machine's CPU."""
    named = os.environ.get("VLLM_MATRIX_TEST_PYTHON")
    if named is None:
        pytest.fail("VLLM_MATRIX_TEST_PYTHON does not name the Python of a vLLM for CPUs")
    return Path(named)


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
