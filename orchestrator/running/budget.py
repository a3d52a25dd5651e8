"""Which cells a budget is enough for, the most telling first, and what it leaves out. Pure."""

import heapq
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.asked.cells import Cell
from orchestrator.asked.config import Budget
from orchestrator.running import covering
from orchestrator.running.cluster import Needs, Node
from orchestrator.running.forecast import Work
from orchestrator.running.plan import Plan

Pool = Hashable
"""What cells wait for: the devices of one card, or a place on any node."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fitted:
    chosen: tuple[Cell, ...]
    """In the order of the plan."""

    left_out: dict[str, str]
    """Cell id to the reason."""

    coverage: float
    """The part of all pairs of two axes' values that is known afterwards."""


def within(
    plan: Plan,
    work: Mapping[str, Work],
    budget: Budget,
    nodes: Sequence[Node],
    known: Sequence[str] = (),
) -> Fitted:
    """*known* are the ids of cells whose verdict is kept: what they show is not shown again."""
    if budget == Budget():
        return Fitted(chosen=plan.runnable, left_out={}, coverage=1.0)
    ids = [cell.id for cell in plan.runnable]
    purse = _purse(budget, plan, nodes)
    chosen = {
        cell_id
        for cell_id in covering.ordered(ids, known)
        if purse.pays(plan.needs[cell_id], work[cell_id])
    }
    coverage = covering.coverage([*chosen, *known], [*ids, *known])
    reason = left_out(budget, len(chosen), coverage)
    return Fitted(
        chosen=tuple(cell for cell in plan.runnable if cell.id in chosen),
        left_out={cell_id: reason for cell_id in ids if cell_id not in chosen},
        coverage=coverage,
    )


def left_out(budget: Budget, cells: int, coverage: float) -> str:
    """The reason, when the budget took *cells*."""
    if not cells:
        return f"left out: the budget of {_amount(budget)} is not enough for it"
    return (
        f"left out: the budget of {_amount(budget)} was used up by {cells} "
        f"{'cell that covers' if cells == 1 else 'cells that cover'} {coverage:.0%} of all pairs"
    )


def _amount(budget: Budget) -> str:
    limits = {"GPU hours": budget.max_gpu_hours, "minutes": budget.max_minutes}
    return " and ".join(f"{most:g} {unit}" for unit, most in limits.items() if most is not None)


@dataclass(kw_only=True, slots=True)
class _Purse:
    """What is left of a budget, as cells are played through in the order in which they come."""

    left_gpu_s: float
    until_s: float
    places: Mapping[Pool, list[float]]
    """Heaps: when each device, or each place for a cell without one, is free."""

    up: dict[Hashable, float] = field(default_factory=dict)
    """When each host is."""

    def pays(self, needs: Needs, work: Work) -> bool:
        """Whether the cell fits; then it is paid."""
        free, wanted = self.places[needs.share], max(1, needs.all_devices)
        taken = [heapq.heappop(free) for _ in range(wanted)]
        begins = taken[-1]
        up = self.up.get(work.host, begins + work.boot_s) if work.host is not None else begins
        ends = max(begins, up) + work.seconds
        gpu_s = needs.all_devices * (ends - begins)
        fits = ends <= self.until_s and gpu_s <= self.left_gpu_s
        for before in taken:
            heapq.heappush(free, ends if fits else before)
        if fits:
            self.left_gpu_s -= gpu_s
            self.up[work.host] = up
        return fits


def _purse(budget: Budget, plan: Plan, nodes: Sequence[Node]) -> _Purse:
    sizes: dict[Pool, int] = {}
    for needs in plan.needs.values():
        pool = needs.share
        if pool not in sizes:
            sizes[pool] = _size(needs, plan, nodes)
        # A node that is waited for brings what its cells need.
        sizes[pool] = max(sizes[pool], needs.all_devices)
    return _Purse(
        left_gpu_s=math.inf if budget.max_gpu_hours is None else budget.max_gpu_hours * 3600,
        until_s=math.inf if budget.max_minutes is None else budget.max_minutes * 60,
        places={pool: [0.0] * size for pool, size in sizes.items()},
    )


def _size(needs: Needs, plan: Plan, nodes: Sequence[Node]) -> int:
    if not needs.devices:
        return plan.at_once
    return sum(node.devices for node in nodes if node.carries(needs.labels))
