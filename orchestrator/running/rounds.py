"""
Whose turn it is, where speed is measured in rounds. Pure.

Builds that are asked the same take turns, there and back: A B, B A, A B. What changes slowly, such
as the heat of a card, or comes once, such as a neighbour's job, then meets all of them alike.
"""

import uuid
from collections.abc import Iterable, Iterator, Mapping

from jobs.contract.attempts import Attempt
from orchestrator.asked import cell_ids
from orchestrator.asked.cells import Cell
from orchestrator.concluded.record import Round


class Rounds:
    """
    Of each question one cell runs at a time, on the node where the first one did. As many questions
    are begun as there are nodes for them: hosts of a question's builds stay warm while it goes on.
    """

    def __init__(self, cells: Iterable[Cell], hosts: Mapping[str, tuple[str, ...]]) -> None:
        """*hosts* is by cell id: the nodes that could take it."""
        self._session = uuid.uuid4().hex[:12]
        groups: dict[str, list[Cell]] = {}
        for cell in cells:
            groups.setdefault(cell_ids.question(cell.id), []).append(cell)
        self._turns = {question: _turns(group) for question, group in groups.items()}
        self._pool = {question: hosts.get(group[0].id, ()) for question, group in groups.items()}
        self._unbegun = list(groups)
        self._measured: dict[str, list[Round]] = {
            cell.id: [] for group in groups.values() for cell in group
        }
        self._left = set(self._measured)
        self._begun = 0
        self._home: dict[str, str] = {}

    def first(self) -> Iterator[Cell]:
        for pool in dict.fromkeys(self._pool.values()):
            for _ in range(max(1, len(pool))):
                yield from self._another(pool)

    def elsewhere(self, cell: Cell, node_ids: Iterable[str]) -> frozenset[str]:
        """Nodes where it should not be measured, since the others of its question were not."""
        home = self._home.get(cell_ids.question(cell.id))
        return frozenset(node_ids) - {home} if home else frozenset()

    def measured(self, cell_id: str) -> tuple[Round, ...]:
        return tuple(self._measured.get(cell_id, ()))

    def ended(
        self, cell: Cell, node_id: str, attempt: Attempt | None
    ) -> tuple[bool, tuple[Cell, ...]]:
        """
        Whether the cell is through, and whose turn it is then, if anybody's. *attempt* is one
        that passed; None: it failed, and its further turns are left out.
        """
        is_last = attempt is None or not self._note(cell, node_id, attempt)
        if is_last:
            self._left.discard(cell.id)
        question = cell_ids.question(cell.id)
        return is_last, tuple(self._next(question)) or tuple(self._another(self._pool[question]))

    def forget(self) -> tuple[str, ...]:
        """Take out, and return, all whose turns never come."""
        left = tuple(cell_id for cell_id in self._measured if cell_id in self._left)
        self._left.clear()
        return left

    def _another(self, pool: tuple[str, ...]) -> Iterator[Cell]:
        """The first of a question that nobody has begun."""
        for question in self._unbegun:
            if self._pool[question] == pool:
                self._unbegun.remove(question)
                yield from self._next(question)
                return

    def _note(self, cell: Cell, node_id: str, attempt: Attempt) -> bool:
        """One more round. Whether others follow."""
        report = attempt.report
        if report is None or report.speed is None:
            return False
        self._begun += 1
        self._home.setdefault(cell_ids.question(cell.id), node_id)
        found = Round(
            session=self._session,
            turn=self._begun,
            node=attempt.placement.node,
            devices=attempt.placement.devices,
            speed=report.speed,
            host_mib=attempt.memory_mib,
            kv_blocks=report.engine.kv_blocks,
        )
        self._measured[cell.id].append(found)
        return len(self._measured[cell.id]) < cell.rounds and cell.id in self._left

    def _next(self, question: str) -> Iterator[Cell]:
        for cell in self._turns[question]:
            if cell.id in self._left:
                yield cell
                return


def _turns(group: list[Cell]) -> Iterator[Cell]:
    for number in range(max(cell.rounds for cell in group)):
        yield from group if number % 2 == 0 else reversed(group)
