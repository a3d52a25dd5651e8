"""docs/reference/failure-categories.md: every kind of failure, and what it is known by."""

from collections.abc import Iterator

from orchestrator.taxonomy import Category, Rule, Taxonomy, taxonomy
from scripts.reference.markdown import code, page, table

INTRODUCTION = """\
A failure has one of these categories. How one is found is in
[Concepts](../concepts.md#categories-of-failure), what people ask about them in the
[FAQ](../faq.md), and how they are tested in [Provoked failures](../failures.md).

*Refusal*: vLLM looked at the request and said no, rather than broke on it. *Tried again*: see
[Attempts and retries](../concepts.md#attempts-and-retries).
"""

UNLESS_SAID = Rule.__dataclass_fields__["type"].default


def text() -> str:
    known = taxonomy()
    return page(
        "Categories of failure",
        "orchestrator/rules/failures.yaml",
        INTRODUCTION,
        table(
            ["category", "owner", "refusal", "tried again"],
            (_row(name, category) for name, category in known.categories.items()),
        ),
        *(part for name in known.categories for part in _section(name, known)),
    )


def _row(name: str, category: Category) -> list[str]:
    refusal = "yes" if category.refusal else ""
    return [f"[`{name}`](#{name})", category.owner, refusal, category.retry.replace("_", " ")]


def _section(name: str, known: Taxonomy) -> Iterator[str]:
    yield f"## {name}"
    yield known.categories[name].next
    evidence = [*_evidence(name, known)]
    if evidence:
        yield "\n".join(["Known by:", "", *(f"- {each}" for each in evidence)])


def _evidence(name: str, known: Taxonomy) -> Iterator[str]:
    yield from (_rule(rule) for rule in known.rules if rule.category == name)
    for waiting in known.waiting:
        if waiting.category == name:
            yield f"a deadline that passed while the engine waited in `{waiting.where.pattern}`"
    signals = [signal for signal, category in known.signals.items() if category == name]
    if signals:
        yield f"a process that was ended by {', '.join(map(code, signals))}"


def _rule(rule: Rule) -> str:
    parts = []
    if rule.type is not UNLESS_SAID:
        parts.append(f"of type {_pattern(rule.type.pattern)}")
    if rule.message.pattern:
        parts.append(f"that says {_pattern(rule.message.pattern)}")
    if rule.where.pattern:
        parts.append(f"raised in {_pattern(rule.where.pattern)}")
    if rule.phase:
        parts.append(f"in phase `{rule.phase}`")
    if rule.emulated:
        parts.append("in an emulated engine")
    if rule.vague:
        parts.append("where nothing else of the chain is known")
    return "an exception " + ", ".join(parts)


def _pattern(pattern: str) -> str:
    fence = "``" if "`" in pattern else "`"
    pad = " " if fence == "``" else ""
    return f"{fence}{pad}{pattern}{pad}{fence}"
