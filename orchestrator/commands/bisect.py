"""Which release, or which commit of a checkout, changed what became of a cell."""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from jobs.node import caches
from orchestrator import reports
from orchestrator.asked import lineage
from orchestrator.asked.compose import compose, options
from orchestrator.asked.conf_files import AXES, CONF, nearest
from orchestrator.asked.config import EMULATED, Config
from orchestrator.bisecting import Terms, bisect
from orchestrator.commands.parsing import Parser
from orchestrator.commands.screen import screen
from orchestrator.errors import BLOCKED, SHIPS, ConfigError
from orchestrator.reports import bisected
from orchestrator.running.progress import ConsoleProgress
from orchestrator.taxonomy import taxonomy

CELL = "h100-emulated/llama31_8b_eagle3/draft_triton_attn"


def parser() -> Parser:
    words = Parser(
        "bisect",
        __doc__,
        {
            f"bisect v0_32_gpu v0_28_gpu {CELL}": "the release that fixed it",
            "bisect 0.32.0 0.33.0 CELL --until kv_layout_conflict": "that brought this failure",
            f"bisect v0.32.0 HEAD {CELL}/v0_32_gpu --checkout ~/vllm": "the commit that broke it",
        },
    )
    for name, which in (("good", "the cell passes"), ("bad", "it does not, or does otherwise")):
        words.add_argument(
            name,
            metavar=name.upper(),
            help=f"a build of conf/build, a release's version, or a revision with which {which}",
        )
    words.add_argument("cell", metavar="CELL", help="hardware/model/backend, and /build of commits")
    words.add_argument(
        "words", nargs="*", metavar="KEY=VALUE", help="as `run` takes them, such as runs=FOLDER"
    )
    words.add_argument(
        "--checkout", metavar="PATH", help="of vLLM, whose commits are laid over CELL's build"
    )
    words.add_argument("--until", metavar="CATEGORY", help="only this failure makes one bad")
    words.add_argument(
        "-cd", "--config-dir", metavar="FOLDER", help="files of your own beside conf/"
    )
    return words


def main(words: Sequence[str]) -> int:
    chosen = parser().parse_intermixed_args([*words])
    card, model, backend, build = _parts(chosen.cell, needs_build=chosen.checkout is not None)
    own = [] if chosen.config_dir is None else [f"--config-dir={chosen.config_dir}"]
    question = (
        *own,
        f"hardware=[{card.removesuffix(EMULATED)}]",
        f"model=[{model}]",
        f"backend=[{backend}]",
        "suite.name=bisect",
        *(("engine_mode=emulated", "suite.check=init") if card.endswith(EMULATED) else ()),
        *chosen.words,
        'suite.select=["*"]',
        "suite.exclude=[]",
        "suite.constraints=[]",
        "suite.proof=null",
    )
    until = _category(chosen.until)
    if chosen.checkout is None:
        config = _all_builds(question, chosen)
        on_cpu = all(each.vendor == "cpu" for each in config.hardware.values())
        row = lineage.releases(chosen.good, chosen.bad, config.build, on_cpu=on_cpu)
    else:
        [config] = compose([*question, f"build=[{build}]"])
        laid = caches.folder(config.cache) / "commits"
        base = build, config.build[build]
        row = lineage.of_commits(chosen.good, chosen.bad, chosen.checkout, base, laid)
    if config.cluster.jobs_api:
        raise ConfigError(
            "bisect drives its cluster itself: name one with cluster.address=ADDRESS, run it "
            "there, or leave `cluster` out; a Jobs API takes whole runs only"
        )
    from orchestrator.running.on_ray.cluster import RayCluster

    with ConsoleProgress(screen()) as progress:
        found = bisect(
            row,
            Terms(
                question=question,
                config=config,
                until=until,
                start=RayCluster,
                progress=progress,
            ),
        )
        reports.write_all(found.run)
    screen().print(bisected.render(found))
    return SHIPS if len(found.finding.suspects) == 1 else BLOCKED


def _parts(cell: str, *, needs_build: bool) -> tuple[str, str, str, str]:
    parts = cell.split("/")
    if len(parts) == len(AXES) - 1:
        parts.append("*")
    if len(parts) != len(AXES) or any(set("*?[") & set(part) for part in parts[:-1]):
        raise ConfigError(f"bisect follows one cell, hardware/model/backend, and {cell} is none")
    if needs_build and parts[-1] == "*":
        raise ConfigError(
            f"commits need a build that they are laid over, which has vLLM's native half: "
            f"name it as CELL's last part, such as {'/'.join(parts[:-1])}/v0_32_gpu"
        )
    card, model, backend, build = parts
    return card, model, backend, build


def _category(until: str | None) -> str | None:
    """As `category=NAME` too."""
    name = until.removeprefix("category=") if until else None
    known = sorted(taxonomy().categories)
    if name is not None and name not in known:
        raise ConfigError(f'--until: there is no category "{name}".{nearest(name, known)}')
    return name


def _all_builds(question: Sequence[str], chosen: Namespace) -> Config:
    """Of conf/, but for those that make no sense here and that nobody asks for."""
    more = [] if chosen.config_dir is None else [Path(chosen.config_dir)]
    names = options("build", [CONF, *more])
    try:
        [config] = compose([*question, f"build=[{','.join(names)}]"])
    except ConfigError as error:
        wrong = {name for name in names if f"build/{name}.yaml" in "\n".join(error.mistakes)}
        left = [name for name in names if name not in wrong]
        if not wrong or not left or wrong & {chosen.good, chosen.bad}:
            raise
        [config] = compose([*question, f"build=[{','.join(left)}]"])
    return config
