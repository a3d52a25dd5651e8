"""Which nodes fail cells for reasons of their own, one after the other. Pure."""

from collections import Counter, defaultdict

TOO_OFTEN = 3
"""Cells in a row. One that passes, or fails for a reason of its own, clears the node."""


class Quarantine:
    def __init__(self) -> None:
        self._in_a_row: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._nodes: set[str] = set()

    def note(self, node_id: str, cell_id: str, *, is_the_nodes: bool) -> bool:
        """How a cell ended on a node. True: from now on the node is to be left alone."""
        if not is_the_nodes:
            self._in_a_row.pop(node_id, None)
            return False
        self._in_a_row[node_id][cell_id] += 1
        if node_id in self._nodes or len(self._in_a_row[node_id]) < TOO_OFTEN:
            return False
        self._nodes.add(node_id)
        return True
