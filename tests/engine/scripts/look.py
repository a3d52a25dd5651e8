"""Runs in an engine: what another cell could have left in this process or its caches."""

import json
import locale
import os
import random
import resource
import signal
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import torch
import vllm
from torch._inductor.runtime.cache_dir_utils import cache_dir
from vllm import envs


def seen() -> dict[str, Any]:
    return {
        "environment": dict(os.environ),
        "folder": str(Path.cwd()),
        "signals": {number.name: str(signal.getsignal(number)) for number in signal.Signals},
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "alarm": signal.getitimer(signal.ITIMER_REAL),
        "umask": status("Umask"),
        "nice": os.nice(0),
        "cores": sorted(os.sched_getaffinity(0)),
        "limits": {name: resource.getrlimit(getattr(resource, name)) for name in LIMITS},
        "descriptors": descriptors(),
        "threads": [sorted(thread.name for thread in threading.enumerate()), status("Threads")],
        "torch": {
            "threads": torch.get_num_threads(),
            "dtype": str(torch.get_default_dtype()),
            "deterministic": torch.are_deterministic_algorithms_enabled(),
            "gradients": torch.is_grad_enabled(),
            "precision": torch.get_float32_matmul_precision(),
            "tf32": torch.backends.cuda.matmul.allow_tf32,
            "seed": torch.initial_seed(),
        },
        "random": [random.random(), torch.rand(1).item()],
        "locale": locale.setlocale(locale.LC_ALL),
        "import path": sys.path,
        "modules": {
            "count": len(sys.modules),
            "version of vllm": vllm.__version__,
            "linear": torch.nn.Linear.forward.__qualname__,
        },
        "caches": {str(folder): left_in(folder) for folder in caches()},
    }


LIMITS = [name for name in dir(resource) if name.startswith("RLIMIT_")]


def status(name: str) -> str:
    """A line that the kernel keeps of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return dict(line.split(":", 1) for line in lines)[name].strip()


def descriptors() -> dict[str, str]:
    """What is open, without the numbers that the kernel gives to pipes and sockets."""
    opened = {
        path: path.readlink() for path in Path("/proc/self/fd").iterdir() if path.is_symlink()
    }
    return {path.name: str(target).partition(":[")[0] for path, target in opened.items()}


def caches() -> list[Path]:
    """As vLLM, torch and Triton find them."""
    return [
        Path(envs.VLLM_CACHE_ROOT),
        Path(cache_dir()),
        Path(os.environ["TRITON_CACHE_DIR"]),
        Path(os.environ["FLASHINFER_WORKSPACE_BASE"]),
        Path(tempfile.gettempdir()),
    ]


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("left-by-a-cell*"))


Path(os.environ["MATRIX_PROBE_FOLDER"], "seen.json").write_text(json.dumps(seen(), indent=1))
