"""`python -m tests.provoking [NAME...]`: provoke failures, and print what they were called."""

import sys
import time
from collections.abc import Sequence
from fnmatch import fnmatch

from tests.provoking import table
from tests.provoking.runner import answers
from tests.provoking.scenarios import SCENARIOS


def main(patterns: Sequence[str]) -> None:
    began = time.monotonic()
    chosen = [each for each in SCENARIOS if any(fnmatch(each.name, p) for p in patterns)]
    found = []
    for answer in answers(chosen):
        found.append(answer)
        say(table.line(answer))
    say("", *table.confusion(found), "")
    say(f"{table.summary(found)}, in {time.monotonic() - began:.0f} s")


def say(*lines: str) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:] or ["*"])
