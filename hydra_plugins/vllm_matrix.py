"""
Hydra's way in: `-m` hands all its jobs over at once, to become one matrix.

Hydra accepts a launcher only from the namespace `hydra_plugins`. What is done
with the jobs is `orchestrator.asked.compose`'s business.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig


class MatrixLauncher(Launcher):
    """Composes every job and gives it to the task function; starts none of them on its own."""

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        self._context = hydra_context
        self._collect = task_function
        self._sweep = config

    def launch(
        self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int
    ) -> Sequence[JobReturn]:
        del initial_job_idx
        return [self._composed(overrides) for overrides in job_overrides]

    def _composed(self, overrides: Sequence[str]) -> JobReturn:
        job = self._context.config_loader.load_sweep_config(self._sweep, list(overrides))
        done = JobReturn(overrides=overrides, cfg=job)
        done.return_value = self._collect(job)
        done.status = JobStatus.COMPLETED
        return done


@dataclass
class LauncherConfig:
    _target_: str = "hydra_plugins.vllm_matrix.MatrixLauncher"


ConfigStore.instance().store(
    group="hydra/launcher", name="matrix", node=LauncherConfig, provider="vllm-matrix"
)
