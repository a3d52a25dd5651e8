"""May the release that a run looked at ship? Exits with 0 or 1."""

import argparse
import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rich.console import Console

from orchestrator import reports
from orchestrator.asked import waiver_file
from orchestrator.asked.compose import compose
from orchestrator.asked.conf_files import CONF, ConfFiles
from orchestrator.asked.policies import Gate
from orchestrator.commands import annotating
from orchestrator.commands.parsing import Parser
from orchestrator.concluded.concerns import Concern
from orchestrator.concluded.gate import Decision
from orchestrator.errors import BLOCKED, SHIPS, ConfigError
from orchestrator.kept import sides
from orchestrator.run import conclude

MANY = 5
"""Cells of which the same is to be said that are named."""


def parser() -> Parser:
    words = Parser(
        "gate",
        __doc__,
        {
            "gate latest": "the newest run, by its own policy",
            "gate latest --baseline 2026-12-01-demo": "does anything fail that did not fail then?",
            "gate latest:v0_33 --baseline latest:v0_32": "the same of two builds of one run",
            "gate latest --policy nightly --waivers ours.yaml": "by other rules",
        },
    ).sides("run")
    words.add_argument(
        "--baseline",
        metavar="RUN",
        help="RUN or RUN:BUILD to compare with; `previous` is the run of its suite before it, "
        "`shipped` the latest before it that shipped",
    )
    words.add_argument(
        "--policy", metavar="NAME", help="a file of conf/gate, in place of the run's own policy"
    )
    words.add_argument(
        "--waivers",
        action="append",
        metavar="FILE",
        help="in place of the run's own waivers; may be said several times",
    )
    words.add_argument(
        *("-cd", "--config-dir"), metavar="FOLDER", help="further policies and waivers"
    )
    return words


def main(words: Sequence[str]) -> int:
    chosen = parser().parse_args(words)
    named = sides.named(chosen.run)
    result = conclude(named.run, build=named.build, policy=_policy(chosen, named))
    decision = result.decision
    console = Console(highlight=False, soft_wrap=True, markup=False, emoji=False)
    console.print(decision.sentence())
    for line in _evidence(decision):
        console.print(f"  {line}")
    annotating.tell(named.run, reports.document_of(named.run, result))
    return SHIPS if decision.ships else BLOCKED


def _policy(chosen: argparse.Namespace, named: sides.Named) -> Gate:
    """The run's own, but for what the words say."""
    policy = own = named.run.asked().gate
    mistakes: list[str] = []
    if chosen.policy is not None:
        more = [f"--config-dir={chosen.config_dir}"] if chosen.config_dir else []
        try:
            [config] = compose([*more, f"gate={chosen.policy}"])
            policy = dataclasses.replace(config.gate, waivers=own.waivers)
        except ConfigError as error:
            mistakes += error.mistakes
    if chosen.waivers is not None:
        folders = (CONF, *([Path(chosen.config_dir)] if chosen.config_dir else []))
        files = [waiver_file.read(name, ConfFiles(folders=folders)) for name in chosen.waivers]
        mistakes += [mistake for _, found in files for mistake in found]
        waivers = tuple(waiver for waivers, _ in files for waiver in waivers)
        policy = dataclasses.replace(policy, waivers=waivers)
    if chosen.baseline is not None:
        try:
            base = sides.baseline(named.run, chosen.baseline)
            if base.name == str(named):
                mistakes.append(f"--baseline: {base.name} is what is to be compared with it")
        except ConfigError as error:
            mistakes.append(f"--baseline: {error}")
        policy = dataclasses.replace(policy, baseline=chosen.baseline)
    if mistakes:
        raise ConfigError("the gate can't be asked like this:", mistakes)
    return policy


def _evidence(decision: Decision) -> Iterator[str]:
    if decision.demonstration is not None:
        yield decision.demonstration.sentence()
        yield from (f"  {reason}" for reason in decision.demonstration.reasons)
    yield from _lines("", decision.blockers)
    for each in decision.waived:
        concern, waiver = each.concern, each.waiver
        yield f"waived: {concern.cell_id}: {_what(concern)}: {waiver.reason} ({waiver.owner})"
    yield from _lines("tolerated: ", decision.tolerated)
    for remark in decision.remarks:
        owned = f"waiver of {remark.waiver.cells} ({remark.waiver.owner})"
        yield f"{owned}, {remark.trouble}: {remark.text}"


def _lines(effect: str, concerns: Iterable[Concern]) -> Iterator[str]:
    """One for each; of many that are alike one for all."""
    alike: dict[tuple[str, str], list[str]] = {}
    for concern in concerns:
        cells = alike.setdefault((_what(concern), concern.reason), [])
        cells += [concern.cell_id] if concern.cell_id else []
    for (what, reason), cells in alike.items():
        if len(cells) <= MANY:
            yield from (f"{effect}{cell}: {what}: {reason}" for cell in cells)
            yield from () if cells else (f"{effect}{what}: {reason}",)
        else:
            shown = f"{', '.join(cells[:MANY])} and {len(cells) - MANY} more"
            yield f"{effect}{len(cells)} cells: {what}: {reason}: {shown}"


def _what(concern: Concern) -> str:
    return f"{concern.kind} ({concern.category})" if concern.category else str(concern.kind)
