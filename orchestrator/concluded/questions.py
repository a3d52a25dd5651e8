"""Which cells ask the same, whatever the files in conf/ are called that describe them."""

from collections.abc import Iterable, Iterator

from orchestrator.asked import digests
from orchestrator.asked.cell_requests import engine_args, environment
from orchestrator.asked.cells import Cell


class Questions:
    """The cells of one build, to be found by what they ask."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        self._cells: dict[str, list[Cell]] = {}
        self._names: dict[str, Cell] = {}
        for cell in cells:
            self._cells.setdefault(digests.hashed(_asks(cell)), []).append(cell)
            self._names[name(cell)] = cell

    def alike(self, cell: Cell) -> list[Cell]:
        """All that ask the same, the one of the same name first."""
        asking = self._cells.get(digests.hashed(_asks(cell)), [])
        return sorted(asking, key=lambda each: name(each) != name(cell))

    def namesake(self, cell: Cell) -> Cell | None:
        """The one of the same name, whatever it asks."""
        return self._names.get(name(cell))


def name(cell: Cell) -> str:
    """hardware/model/backend, as conf/ calls them."""
    return cell.id.rsplit("/", 1)[0]


def differing(one: Cell, other: Cell) -> Iterator[str]:
    """The names of what the two don't ask alike."""
    here, there = _asks(one), _asks(other)
    return (part for part in {**here, **there} if here.get(part) != there.get(part))


def _asks(cell: Cell) -> dict[str, object]:
    """All that vLLM is told, and of the card which it is: how we describe it may be mended."""
    return {
        "card": (cell.hardware.vendor, cell.hardware.card),
        "engine_mode": cell.engine_mode,
        "check": cell.check,
        **engine_args(cell),
        **environment(cell),
    }
