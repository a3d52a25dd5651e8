"""A cell that several nodes run together: what each is asked, and one end of them all. Pure."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from jobs.contract.asked import CellRequest, Deadlines, Part
from jobs.contract.attempts import Attempt
from jobs.contract.seen import ProbeReport
from jobs.contract.terms import Phase
from orchestrator.concluded.classify import explains
from orchestrator.running.cluster import Ended, Node

AFTER_S = 60.0
"""What happens in time is for the part that leads to say: the others have so much longer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PartEnded:
    node: Node
    number: int
    """The first leads."""

    end: Ended


def parted(
    requests: Sequence[CellRequest], nodes: Sequence[Node], secret: str
) -> tuple[CellRequest, ...]:
    """What the nodes are asked who run a cell together, the one that leads first."""
    parts = (
        Part(
            number=number,
            of=len(nodes),
            node=node.name,
            address=node.address,
            leader=nodes[0].address,
            secret=secret,
        )
        for number, node in enumerate(nodes)
    )
    leading, *others = map(_with, requests, parts)
    return leading, *map(_following, others)


def led_at(request: CellRequest, port: int) -> CellRequest:
    """The request of a part that follows, now that the one that leads has told its port."""
    assert request.part is not None
    return dataclasses.replace(request, part=dataclasses.replace(request.part, port=port))


def joined(ends: Sequence[PartEnded]) -> Ended:
    """*ends* in the order in which they came."""
    in_order = sorted(ends, key=lambda part: part.number)
    leading = in_order[0]
    if _is_fine(leading.end.attempt):
        blamed = leading
    else:
        lost = [part for part in ends if part.end.attempt is None]
        blamed = min([*lost, *in_order], key=_weight)
    if blamed.end.attempt is None or blamed.end.attempt.exit.parted:
        return _without_attempt(blamed, in_order)
    assert leading.end.attempt is not None
    attempt = _told_by(blamed, leading.end.attempt)
    return dataclasses.replace(
        leading.end, attempt=_of_all(attempt, in_order), node_id=blamed.node.id
    )


def _with(request: CellRequest, part: Part) -> CellRequest:
    return dataclasses.replace(request, part=part)


def _following(request: CellRequest) -> CellRequest:
    """It has files of its own; and it may well be quiet, and in one phase, while others work."""
    assert request.part is not None
    asked = request.deadlines
    longer_s = asked.attempt_s + AFTER_S
    boot: dict[Phase, float] = {
        phase: s for phase, s in asked.phases_s.items() if phase is Phase.IMPORT
    }
    return dataclasses.replace(
        request,
        workdir=f"{request.workdir}.part{request.part.number}",
        deadlines=Deadlines(attempt_s=longer_s, quiet_s=longer_s, phases_s=boot),
    )


def _is_fine(attempt: Attempt | None) -> bool:
    """Whatever becomes of the others then: they have no more to do."""
    if attempt is None or attempt.report is None:
        return False
    return attempt.exit.code == 0 and attempt.report.failure is None


def _weight(part: PartEnded) -> int:
    """Of what became of it, the less the sooner it is the cause of all."""
    attempt = part.end.attempt
    if attempt is None:
        return 0
    if attempt.exit.parted:
        return 3
    return 1 if explains(attempt) else 2


def _without_attempt(blamed: PartEnded, ends: Sequence[PartEnded]) -> Ended:
    names = " and ".join(part.node.name for part in ends)
    trouble = blamed.end.infrastructure_error
    why = f"on {blamed.node.name}: {trouble}" if trouble else f"{names} lost each other"
    return dataclasses.replace(
        blamed.end, attempt=None, infrastructure_error=why, node_id=blamed.node.id
    )


def _told_by(blamed: PartEnded, leading: Attempt) -> Attempt:
    """The attempt of the part that leads, with the end of the one that is to blame."""
    told = blamed.end.attempt
    assert told is not None
    end = dataclasses.replace(told.exit, node=None if _is_fine(told) else blamed.node.name)
    if told is leading:
        return dataclasses.replace(leading, exit=end)
    return dataclasses.replace(
        leading,
        exit=end,
        phase=told.phase,
        log=told.log,
        log_tail=told.log_tail,
        waiting=told.waiting,
        report=_reported(leading.report, told.report),
    )


def _reported(leading: ProbeReport | None, told: ProbeReport | None) -> ProbeReport | None:
    """What the engine is, with what a part failed of that has only ranks."""
    if leading is None or told is None:
        return told or (leading and dataclasses.replace(leading, failure=None))
    return dataclasses.replace(
        leading,
        failure=told.failure,
        phase=told.phase,
        rejections=leading.rejections or told.rejections,
        selections=leading.selections or told.selections,
        notes=tuple(dict.fromkeys((*leading.notes, *told.notes))),
    )


def _of_all(attempt: Attempt, ends: Sequence[PartEnded]) -> Attempt:
    attempts = [part.end.attempt for part in ends if part.end.attempt is not None]
    others = tuple(part.node.name for part in ends[1:])
    return dataclasses.replace(
        attempt,
        placement=dataclasses.replace(attempt.placement, others=others),
        # What is asked for is asked for on each of the nodes.
        memory_mib=max((each.memory_mib or 0 for each in attempts), default=0) or None,
        processes_killed=sum(each.processes_killed for each in attempts),
    )
