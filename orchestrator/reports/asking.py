"""What a cell asks, in words."""

from collections.abc import Iterator

from orchestrator.asked.cell_requests import asked
from orchestrator.asked.cells import Cell
from orchestrator.asked.config import Expectation


def lines(cell: Cell) -> Iterator[str]:
    """The card, the model, and what is expected if that is not just that it runs."""
    yield f"card: {_card(cell)}"
    yield f"model: {model(cell)}"
    if cell.expectation != Expectation():
        yield f"expected: {_expected(cell.expectation)}"


def model(cell: Cell) -> str:
    of = cell.model
    parts = [of.path, *([of.dtype] if of.dtype else [])]
    if of.devices > 1:
        parts.append(f"{of.devices} devices")
    if of.speculative:
        draft = of.speculative.get("model")
        tokens = of.speculative.get("num_speculative_tokens")
        many = f", {tokens} tokens" if tokens else ""
        method = of.speculative.get("method", "draft")
        parts.append(f"draft by {method}{f' ({draft})' if draft else ''}{many}")
    return ", ".join(parts)


def requests(cell: Cell) -> dict[str, str]:
    return {name: value for name, value in asked(cell).items() if value is not None}


def _card(cell: Cell) -> str:
    known = [cell.hardware.product, cell.hardware.arch]
    return ", ".join(filter(None, known)) or cell.axis("hardware")


def _expected(expected: Expectation) -> str:
    parts = [f"it {' or '.join(_OUTCOMES[each] for each in expected.outcome)}"]
    if expected.category:
        parts.append(f"by {expected.category}")
    if expected.phase:
        parts.append(f"in {expected.phase}")
    for field, verdicts in expected.requests.items():
        parts.append(f"{field} {' or '.join(verdicts)}")
    parts += [f"{field} is {value}" for field, value in expected.got.items()]
    return ", ".join(parts)


_OUTCOMES = {"runs": "runs", "refused": "is refused", "fails": "fails"}
