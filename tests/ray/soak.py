"""
Two runs side by side, of emulated cells and of cells that only import vLLM, while at random
something of theirs is killed or stopped. A run that ends early is started again, by the
same command, until it has a verdict on every cell.
"""

import json
import os
import random
import signal
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from orchestrator.errors import BLOCKED, SHIPS
from tests.ray.driver import Driver, parent

MODELS = (
    "llama31_8b,qwen3_8b,gemma3_27b,gpt_oss_20b,mixtral_8x7b,deepseek_v3,llama31_8b_eagle3,"
    "llama31_8b_eagle,llama31_8b_ngram,llama31_8b_draft_model,qwen3_8b_dflash,deepseek_v3_mtp,"
    "glm45_air_mtp,mimo_7b_mtp"
)
BACKENDS = (
    "auto,triton_attn,flashinfer,flex_attention,moe_triton,draft_triton_attn,draft_kv_fp8,"
    "flashinfer_draft_triton_attn,flex_attention_draft_triton_attn,kv_nvfp4,unknown_attn"
)
EMULATED = (
    "engine_mode=emulated",
    "suite.check=init",
    "hardware=[h100,mi300x]",
    f"model=[{MODELS}]",
    f"backend=[{BACKENDS}]",
    "build=[v0_32_gpu]",
)
COMMON = ("cluster.cells_at_once=1", "attempts=4", "deadline_s=30")

PAUSE_S = (1.0, 5.0)
LOOK_S = 1.0
LOOKS = 15
"""What a life has to have for its growth to be told from chance."""

TICK_S = 0.02
PATIENCE_S = 10.0
STOPPED_S = 1.0
SETTLED = 0.3
"""The part of its life that a process may grow in: what it does the first time stays in memory."""

Victim = Callable[[Driver, random.Random], int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    name: str
    victim: Victim
    signals: tuple[signal.Signals, ...] = (signal.SIGKILL,)
    weight: int


@dataclass(kw_only=True, slots=True)
class Life:
    """Of one process: what it held, look by look."""

    mib: list[float] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)

    def growth_mib(self) -> float:
        return _growth(self.mib)

    def growth_descriptors(self) -> float:
        return _growth(self.descriptors)


def _cell(driver: Driver, chance: random.Random) -> int:
    return chance.choice(driver.probes())


def _keeper(driver: Driver, chance: random.Random) -> int:
    return parent(_cell(driver, chance))


def _host(driver: Driver, chance: random.Random) -> int:
    return parent(_keeper(driver, chance))


def _worker(driver: Driver, chance: random.Random) -> int:
    return chance.choice(
        [pid for pid in driver.processes("ray::") if parent(pid) == _raylet(driver)]
    )


def _raylet(driver: Driver) -> int:
    return driver.processes("raylet/raylet")[0]


def _head(driver: Driver) -> int:
    return driver.processes("gcs_server")[0]


def _run(driver: Driver) -> int:
    return driver.run


def _supervisor(driver: Driver) -> int:
    return driver.process.pid


def _of_all(of: Callable[[Driver], int]) -> Victim:
    """Whose end ends the run: only once that has got as far as to its cells, or it never would."""

    def victim(driver: Driver, chance: random.Random) -> int:
        _cell(driver, chance)
        return of(driver)

    return victim


AND_ON = (signal.SIGSTOP, signal.SIGCONT)

FAULTS = (
    Fault(name="kill cell", victim=_cell, weight=20),
    Fault(name="kill keeper", victim=_keeper, weight=15),
    Fault(name="kill host", victim=_host, weight=8),
    Fault(name="kill Ray worker", victim=_worker, weight=10),
    Fault(name="stop cell", victim=_cell, signals=(signal.SIGSTOP,), weight=3),
    Fault(name="stop host for a while", victim=_host, signals=AND_ON, weight=6),
    Fault(name="stop Ray worker for a while", victim=_worker, signals=AND_ON, weight=6),
    Fault(name="stop driver for a while", victim=_of_all(_run), signals=AND_ON, weight=6),
    Fault(name="kill raylet", victim=_of_all(_raylet), weight=2),
    Fault(name="kill head", victim=_of_all(_head), weight=1),
    Fault(name="kill driver", victim=_of_all(_run), weight=2),
    Fault(name="kill supervisor", victim=_of_all(_supervisor), weight=1),
    Fault(name="Ctrl-C", victim=_of_all(_supervisor), signals=(signal.SIGINT,), weight=2),
)


@dataclass(kw_only=True)
class Soak:
    folder: Path
    seed: int
    cells: int
    faults: int

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        self.injected: Counter[str] = Counter()
        self.starts: Counter[str] = Counter()
        self.left: list[str] = []
        self.lives: dict[str, dict[int, Life]] = defaultdict(lambda: defaultdict(Life))
        self.seconds = 0.0
        self._drivers: dict[str, Driver] = {}

    def run(self) -> None:
        began = time.monotonic()
        emulated = self._start("emulated", EMULATED)
        emulated.until(lambda: [*emulated.folder.glob("runs/*/run.json")], "no run")
        self._start("no-op", self._no_op(self.cells - len(asked(emulated))))
        looked = disturbed = time.monotonic()
        pause_s = 0.0
        fault = self._choose()
        while self._go_on():
            if time.monotonic() - looked > LOOK_S:
                looked = time.monotonic()
                self._look()
            waited_s = time.monotonic() - disturbed
            if waited_s > pause_s and self.injected.total() < self.faults:
                # Cells are short: the one to disturb has to be waited for.
                if self._disturb(self._chance.choice(self.drivers()), fault):
                    disturbed, pause_s = time.monotonic(), self._chance.uniform(*PAUSE_S)
                    fault = self._choose()
                elif waited_s > pause_s + PATIENCE_S:
                    fault = self._choose()
            time.sleep(TICK_S)
        self.seconds = time.monotonic() - began

    def drivers(self) -> list[Driver]:
        return [*self._drivers.values()]

    def summary(self) -> str:
        cells = sum(len(asked(driver)) for driver in self.drivers())
        records = sum((verdicts(driver) for driver in self.drivers()), Counter[str]())
        lost, doubled = cells - len(records), records.total() - len(records)
        faults = ", ".join(f"{count} x {name}" for name, count in self.injected.most_common())
        starts = ", ".join(f"{name} {count}" for name, count in self.starts.items())
        growths = [
            f"{kind}, {len(_long(lives))} processes of {len(lives)} seen {LOOKS} times or more: "
            f"at most {growth(lives, Life.growth_mib):.1f} MiB "
            f"and {growth(lives, Life.growth_descriptors):g} descriptors more"
            for kind, lives in self.lives.items()
        ]
        return f"""\
seed {self.seed}, {self.seconds:.0f} s, runs started: {starts}
{cells} cells, {records.total()} terminal records, {lost} lost, {doubled} doubled, \
{len(self.left)} processes and files left
{self.injected.total()} faults: {faults}
{chr(10).join(growths)}
"""

    def end(self) -> None:
        """What is left once both are over; all of it, if they were broken off."""
        for driver in self.drivers():
            if driver.process.poll() is not None:
                self.left += driver.left()
            driver.kill_all()

    def _no_op(self, cells: int) -> tuple[str, ...]:
        models = self.folder / "conf" / "model"
        models.mkdir(parents=True, exist_ok=True)
        names = [f"no_op_{number:03}" for number in range(cells)]
        for name in names:
            text = f"# @package model.{name}\npath: shipped:llama\ndtype: float32\nmemory_gib: 1\n"
            (models / f"{name}.yaml").write_text(text)
        return (
            f"--config-dir={self.folder / 'conf'}",
            "suite.check=import",
            "hardware=[cpu]",
            f"model=[{','.join(names)}]",
            "backend=[auto]",
            "build=[v0_32]",
        )

    def _start(self, name: str, words: Sequence[str]) -> Driver:
        self.starts[name] += 1
        driver = Driver(folder=self.folder / name, words=(*words, *COMMON), patience_s=60)
        self._drivers[name] = driver.start()
        return driver

    def _go_on(self) -> bool:
        """Start again what has ended without a verdict on every cell."""
        for name, driver in self._drivers.items():
            if driver.process.poll() is not None and not is_done(driver):
                self.left += driver.left(patience_s=20)
                self._start(name, driver.words[: -len(COMMON)])
        return not all(map(is_done, self.drivers()))

    def _choose(self) -> Fault:
        return self._chance.choices(FAULTS, [fault.weight for fault in FAULTS])[0]

    def _disturb(self, driver: Driver, fault: Fault) -> bool:
        """Whether there was something to disturb, and still was when the signal came."""
        with suppress(LookupError, ValueError, OSError, psutil.NoSuchProcess):
            victim = fault.victim(driver, self._chance)
            for number in fault.signals:
                os.kill(victim, number)
                time.sleep(STOPPED_S if number is signal.SIGSTOP else 0)
            self.injected[fault.name] += 1
            return True
        return False

    def _look(self) -> None:
        """At those that have a cell now: one that starts, or ends, holds other things."""
        for driver in self.drivers():
            for cell in driver.probes():
                with suppress(ValueError, psutil.NoSuchProcess):
                    self._measure("host", parent(parent(cell)))
                    self._measure("driver", driver.run)

    def _measure(self, kind: str, pid: int) -> None:
        process = psutil.Process(pid)
        life = self.lives[kind][pid]
        # Not what is its own alone, which grows each time that a cell of it ends.
        life.mib.append(process.memory_info().rss / 2**20)
        life.descriptors.append(process.num_fds())


def asked(driver: Driver) -> set[str]:
    [file] = driver.folder.glob("runs/*/run.json")
    return {cell["id"] for cell in json.loads(file.read_text())["cells"]}


def is_done(driver: Driver) -> bool:
    """Whether it has a verdict on every cell, and has ended by itself."""
    ended = driver.process.poll() in {SHIPS, BLOCKED}
    return ended and asked(driver) == verdicts(driver).keys()


def verdicts(driver: Driver) -> Counter[str]:
    """How many terminal records each cell has."""
    lines = driver.lines() if [*driver.folder.glob("runs/*/records.jsonl")] else []
    return Counter(line["cell_id"] for line in lines if line["judgement"]["verdict"] != "not run")


def growth(lives: dict[int, Life], of: Callable[[Life], float]) -> float:
    """The most that any of the longer lives grew by."""
    return max(map(of, _long(lives)), default=0.0)


def _long(lives: dict[int, Life]) -> list[Life]:
    return [life for life in lives.values() if len(life.mib) >= LOOKS]


def _growth(series: Sequence[float]) -> float:
    """From the first part after settling to the last, as medians."""
    settled = series[int(len(series) * SETTLED) :]
    part = max(1, len(settled) // 3)
    return statistics.median(settled[-part:]) - statistics.median(settled[:part])
