"""The form of a cell's id: hardware/model/backend/build, the hardware marked where emulated."""

from orchestrator.asked.config import EMULATED


def parts(cell_id: str) -> tuple[str, str, str, str]:
    """Card, model, backend and build; the card is `h100-emulated` where it is not there."""
    card, model, backend, build = cell_id.split("/")
    return card, model, backend, build


def card(cell_id: str) -> str:
    return cell_id.split("/", 1)[0]


def question(cell_id: str) -> str:
    """What is asked, whatever the build: hardware/model/backend, as conf/ calls them."""
    return cell_id.rsplit("/", 1)[0]


def build(cell_id: str) -> str:
    return cell_id.rsplit("/", 1)[-1]


def is_emulated(cell_id: str) -> bool:
    return card(cell_id).endswith(EMULATED)
