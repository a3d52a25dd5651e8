"""Whether the ranks of one engine have the same where they should. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from jobs.contract.seen import AttentionGroup, MoeGroup, RankSeen


@dataclass(frozen=True, kw_only=True, slots=True)
class Disagreement:
    about: str
    """`target.attention_backend`, `kv_layout`; a field's name where there is one."""

    subject: str
    """Of what: a layer, the experts of a pipeline stage, or the engine."""

    had: tuple[tuple[str, tuple[int, ...]], ...]
    """Each of the answers, with the ranks that gave it."""

    def __str__(self) -> str:
        answers = "; ".join(f"{answer} on {_listed(ranks)}" for answer, ranks in self.had)
        return f"workers disagree about {self.about} of {self.subject}: {answers}"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Answer:
    about: str
    subject: str
    value: str


def disagreements(ranks: Sequence[RankSeen]) -> tuple[Disagreement, ...]:
    """What is told of the same thing in more than one way; layers that differ alike, together."""
    told: dict[tuple[str, str], dict[str, list[int]]] = {}
    for rank in ranks:
        for answer in _answers(rank):
            values = told.setdefault((answer.about, answer.subject), {})
            values.setdefault(answer.value, []).append(rank.rank)
    alike: dict[tuple[str, tuple[tuple[str, tuple[int, ...]], ...]], list[str]] = {}
    for (about, subject), values in told.items():
        if len(values) > 1:
            had = tuple((value, tuple(said_by)) for value, said_by in values.items())
            alike.setdefault((about, had), []).append(subject)
    return tuple(
        Disagreement(about=about, subject=_several(subjects), had=had)
        for (about, had), subjects in alike.items()
    )


def _answers(rank: RankSeen) -> Iterator[_Answer]:
    """What other ranks that have the same layer, stage or engine must say too."""
    for owner, groups in (("target", rank.target), ("draft", rank.draft)):
        yield from _of_layers(owner, groups)
    for owner, experts in (("target", rank.target_moe), ("draft", rank.draft_moe)):
        if experts:
            stage = f"stage {rank.pipeline}"
            yield _Answer(about=f"{owner}.moe_backend", subject=stage, value=_experts(experts))
    for about, value in (("kv_layout", rank.kv_layout), ("runner", rank.runner)):
        if value is not None:
            yield _Answer(about=about, subject="the engine", value=value)


def _of_layers(owner: str, groups: Iterable[AttentionGroup]) -> Iterator[_Answer]:
    for group in groups:
        facts = {
            "attention_backend": f"{group.backend} ({group.class_path.rsplit('.', 1)[-1]})",
            "kv_cache_dtype": f"{group.kv_cache_dtype} ({group.kv_torch_dtype})",
            "block_size": str(group.block_size),
        }
        for layer in group.layer_names:
            for name, value in facts.items():
                yield _Answer(about=f"{owner}.{name}", subject=layer, value=value)


def _experts(groups: Iterable[MoeGroup]) -> str:
    kinds = (f"{group.layers} of {group.backend or group.quant_method}" for group in groups)
    return ", ".join(sorted(kinds))


def _several(subjects: Sequence[str]) -> str:
    others = len(subjects) - 1
    return subjects[0] if not others else f"{subjects[0]} and {others} more"


def _listed(ranks: Sequence[int]) -> str:
    noun = "rank" if len(ranks) == 1 else "ranks"
    return f"{noun} {', '.join(map(str, ranks))}"
