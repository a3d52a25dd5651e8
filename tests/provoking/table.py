"""What the provoked failures were called, for people."""

from collections import Counter
from collections.abc import Iterator, Sequence

from tests.provoking.runner import Answer

NOTHING = "none"


def line(answer: Answer) -> str:
    mark = "ok   " if answer.is_right else "WRONG" if answer.misleads else "near "
    called = answer.got or NOTHING
    if not answer.is_right:
        called += f" instead of {answer.scenario.expected or NOTHING}"
    return (
        f"{mark} {answer.attempt.seconds:5.1f} s  {answer.scenario.name}: {called}  {answer.cause}"
    )


def confusion(answers: Sequence[Answer]) -> Iterator[str]:
    """Expected and got, as a table of Markdown: a row for each category that was expected."""
    counts = Counter((each.scenario.expected or NOTHING, each.got or NOTHING) for each in answers)
    yield "| expected | provoked | called so | called otherwise |"
    yield "|---|---|---|---|"
    for expected in sorted({expected for expected, _ in counts}):
        row = {got: n for (wanted, got), n in counts.items() if wanted == expected}
        others = ", ".join(f"`{got}` {n}" for got, n in sorted(row.items()) if got != expected)
        yield f"| `{expected}` | {sum(row.values())} | {row.get(expected, 0)} | {others} |"


def summary(answers: Sequence[Answer]) -> str:
    right = sum(each.is_right for each in answers)
    misleading = sum(each.misleads for each in answers)
    return (
        f"{right} of {len(answers)} failures got their category, "
        f"{misleading} one that would send the wrong person looking"
    )
