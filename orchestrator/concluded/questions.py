"""Which cells ask the same, whatever the files in conf/ are called that describe them."""

from collections.abc import Iterable, Iterator

from orchestrator.asked import cell_ids, digests
from orchestrator.asked.cell_requests import engine_args, environment, workload
from orchestrator.asked.cells import Cell


class Questions:
    """The cells of one build, to be found by what they ask."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        self._asking: dict[str, dict[str, Cell]] = {}
        self._named: dict[str, Cell] = {}
        for cell in cells:
            self._asking.setdefault(fingerprint(cell), {})[cell_ids.question(cell.id)] = cell
            self._named[cell_ids.question(cell.id)] = cell

    def same(self, cell: Cell) -> Cell | None:
        """The one that asks the same; of several the one that has the same name."""
        asking = self._asking.get(fingerprint(cell), {})
        return asking.get(cell_ids.question(cell.id)) or next(iter(asking.values()), None)

    def namesake(self, cell: Cell) -> Cell | None:
        """The one of the same name, whatever it asks."""
        return self._named.get(cell_ids.question(cell.id))

    def unasked(self, cells: Iterable[Cell]) -> Iterator[Cell]:
        """Those that ask what none of *cells* does."""
        keys = {fingerprint(cell) for cell in cells}
        for key, asking in self._asking.items():
            if key not in keys:
                yield from asking.values()


def differing(one: Cell, other: Cell) -> Iterator[str]:
    """The names of what the two don't ask alike."""
    here, there = _asks(one), _asks(other)
    return (part for part in {**here, **there} if here.get(part) != there.get(part))


def fingerprint(cell: Cell) -> str:
    """The same for cells that ask the same, of whatever build."""
    return digests.hashed(_asks(cell))


def _asks(cell: Cell) -> dict[str, object]:
    """All that vLLM is told, and of the card which it is: how we describe it may be mended."""
    return {
        "card": (cell.hardware.vendor, cell.hardware.card),
        "engine_mode": cell.engine_mode,
        "check": cell.check,
        "workload": workload(cell),
        **engine_args(cell),
        **environment(cell),
    }
