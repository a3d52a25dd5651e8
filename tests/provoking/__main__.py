"""`python -m tests.provoking [NAME...]`: provoke failures, and print what they were called."""

import sys
import time
from fnmatch import fnmatch

from tests.provoking import table
from tests.provoking.runner import answers
from tests.provoking.scenarios import SCENARIOS


def main(patterns: list[str]) -> None:
    began = time.monotonic()
    chosen = [each for each in SCENARIOS if any(fnmatch(each.name, p) for p in patterns or ["*"])]
    found = []
    for answer in answers(chosen):
        found.append(answer)
        print(table.line(answer), flush=True)
    print()
    print("\n".join(table.confusion(found)))
    print(f"\n{table.summary(found)} in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
