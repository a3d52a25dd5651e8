"""What the tutorials say one should type, and what one should then see."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

TUTORIALS = sorted((Path(__file__).parents[1] / "docs" / "tutorials").glob("*.md"))

BLOCK = re.compile(r"^```(?P<kind>sh|text)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"# ends with (\d+)\s*$")
HERE_DOCUMENT = re.compile(r"<<'END'.*?^END$", re.MULTILINE | re.DOTALL)


@dataclass(kw_only=True, slots=True)
class Step:
    """One block of commands, and the lines that are shown below it."""

    script: str
    code: int
    shown: list[str]

    def commands(self) -> Iterator[list[str]]:
        """The words of each call of vllm-matrix."""
        text = HERE_DOCUMENT.sub("", self.script).replace("\\\n", " ")
        for line in text.splitlines():
            words = shlex.split(line, comments=True)
            if words and words[0] == "vllm-matrix":
                # Where the output goes is the shell's.
                yield [*takewhile(lambda word: word != ">", words[1:])]

    def missing(self, output: str) -> list[str]:
        """Lines that should be there, however wide the screen is."""
        flat = " ".join(output.split())
        return [line for line in self.shown if " ".join(line.split()) not in flat]


def steps(tutorial: Path) -> list[Step]:
    found: list[Step] = []
    for block in BLOCK.finditer(tutorial.read_text()):
        text = block["text"]
        if block["kind"] == "sh":
            code = CODE.search(text.rstrip())
            found.append(Step(script=text, code=int(code[1]) if code else 0, shown=[]))
        else:
            found[-1].shown += [line for line in text.splitlines() if line.strip()]
    return found
