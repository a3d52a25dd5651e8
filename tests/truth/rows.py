"""
What others published about vLLM's choice of an attention backend, one row per question.

A file of `sources` is one publication, or one kind of them. It states claims, each for
some cards and for every combination of the values in *ask*; a combination on a card is
a row.
"""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
AS_REQUESTED = "as requested"


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    id: str
    """publication/claim/card, and the values that differ between the rows of a claim."""

    version: str
    """The release that the publication speaks about."""

    card: str
    env: dict[str, str] = field(default_factory=dict)
    question: dict[str, Any]
    """As `jobs.probe.emulation.ask` takes it."""

    backend: str | None = None
    refused: str | None = None
    """A part of the refusal's text."""

    accepted: tuple[str, ...] = ()
    """All backends that serve, the most preferred first."""

    @property
    def environment(self) -> tuple[tuple[str, str], ...]:
        """To sort by."""
        return tuple(sorted(self.env.items()))

    def difference(self, answer: Mapping[str, Any]) -> str | None:
        """Between what is published and what vLLM answered; None if they agree."""
        error: str | None = answer["error"]
        got = error or answer["backend"]
        if self.refused is not None:
            agrees = error is not None and self.refused in error
            return None if agrees else f"published: refused ({self.refused}); vLLM: {got}"
        if self.backend is not None and answer["backend"] != self.backend:
            return f"published: {self.backend}; vLLM: {got}"
        accepted = accepted_by(answer)
        if self.accepted and accepted != self.accepted:
            return f"published: {', '.join(self.accepted)}; vLLM: {', '.join(accepted)}"
        return None


def accepted_by(answer: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(answer["table"]["accepted"]) if answer["table"] else ()


def published() -> list[Row]:
    return [row for path in sorted((HERE / "sources").glob("*.yaml")) for row in _of(path)]


def explained() -> dict[str, str]:
    """Rows that are known to differ, by id, to the reason."""
    reasons: dict[str, str] = yaml.safe_load((HERE / "explained.yaml").read_text())
    return reasons


def _of(path: Path) -> Iterator[Row]:
    publication = yaml.safe_load(path.read_text())
    for claim in publication["claims"]:
        backend = claim.get("backend")
        for card, (question, varied) in itertools.product(
            claim["cards"], list(_combinations(claim["ask"]))
        ):
            yield Row(
                id="/".join([path.stem, claim["name"], card, *varied]),
                version=claim.get("version", publication["version"]),
                card=card,
                env=claim.get("env", {}),
                question=question,
                backend=question["requested"] if backend == AS_REQUESTED else backend,
                refused=claim.get("refused"),
                accepted=tuple(claim.get("accepted", ())),
            )


def _combinations(ask: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Each with those of its values that are not the same in all of them."""
    varied = {name: values for name, values in ask.items() if isinstance(values, list)}
    for values in itertools.product(*varied.values()):
        chosen = dict(zip(varied, values, strict=True))
        yield {**ask, **chosen}, [f"{name}={value}" for name, value in chosen.items()]
