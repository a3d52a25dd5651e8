"""docs/reference/exit-codes.md."""

from orchestrator.errors import EXIT_CODES
from scripts.reference.markdown import page, table

INTRODUCTION = """\
Every command ends with one of these. Nothing but a gate that ships, or something that was shown,
is 0: a run that lacks a cell is blocked, and a mistake in the words is no success.
"""

AFTERWARDS = """\
`vllm-matrix submit` and a run that goes to a cluster end with the code of the run there. A Ray job
that was submitted in another way ends with 1 whatever went wrong; see
[Running on a cluster](../submitting.md#exit-codes).

In a shell, or in CI:

```
vllm-matrix run suite=releases
case $? in
  0) echo "ships" ;;
  1) echo "blocked: vllm-matrix gate latest says why" ;;
  4 | 130) echo "say it again: what finished is kept" ;;
  *) echo "nothing was decided" ;;
esac
```
"""


def text() -> str:
    rows = ([str(code), says] for code, says in EXIT_CODES.items())
    return page(
        "Exit codes",
        "orchestrator/errors.py",
        INTRODUCTION,
        table(["code", "meaning"], rows),
        AFTERWARDS,
    )
