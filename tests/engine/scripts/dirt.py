"""Runs in an engine: everything that one cell could do to the next. It leaves this cell running."""

import locale
import os
import random
import resource
import signal
import tempfile
import threading
from pathlib import Path

import torch
import vllm
from torch._inductor.runtime.cache_dir_utils import cache_dir
from vllm import envs
from vllm.v1.worker import worker_base


def touch_the_process() -> None:
    os.environ.update({"VLLM_LOGGING_LEVEL": "DEBUG", "DIRT": "1", "OMP_NUM_THREADS": "7"})
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGUSR2, print)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
    signal.setitimer(signal.ITIMER_REAL, 3600)
    os.umask(0o077)
    os.nice(3)
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, most))
    locale.setlocale(locale.LC_ALL, "C.UTF-8")
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    for number in range(3):
        os.set_inheritable(os.open(f"/dev/{('null', 'zero', 'full')[number]}", os.O_RDWR), True)
    os.set_blocking(0, False)


def touch_modules() -> None:
    torch.set_default_dtype(torch.float64)
    torch.use_deterministic_algorithms(True)
    torch.set_float32_matmul_precision("medium")
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.set_num_threads(2)
    torch.manual_seed(4711)
    random.seed(4711)
    vllm.__version__ = "dirty"
    worker_base.WorkerWrapperBase.dirt = True
    torch.set_default_dtype(torch.float32)


def touch_files() -> None:
    for folder in (
        envs.VLLM_CACHE_ROOT,
        cache_dir(),
        os.environ["TRITON_CACHE_DIR"],
        os.environ["FLASHINFER_WORKSPACE_BASE"],
        tempfile.gettempdir(),
        Path.home() / ".cache" / "vllm",
        Path.home() / ".triton" / "cache",
    ):
        Path(folder).mkdir(parents=True, exist_ok=True)
        Path(folder, "left-by-a-cell").write_text("dirt")


touch_modules()
touch_files()
touch_the_process()
os.chdir("/")
if number := os.environ.get("MATRIX_SIGNAL"):
    os.kill(os.getpid(), int(number))
