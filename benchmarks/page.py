"""
`python -m benchmarks.page [CELLS]`: how soon the page of a large run can be read.

A run of 5,000 cells is made up (`benchmarks.made_up_run`), and judged, recorded and reported by
the ordinary way. Its `matrix.html` is then opened from disk in Chromium.

- `open_ms` is from the navigation until the matrix is painted.
- `filter_ms` is of the slowest filter, from the key or the press until the painted matrix.
- `view_ms` is of the slowest change of what is shown: every group unfolded, all in words,
  differences, list.
- `mib` is the file; `make_s` is what it takes to write it.

Each is the median of ROUNDS pages. The last line is one JSON object.
"""

import json
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from playwright.sync_api import Browser, Page

from benchmarks import browser, made_up_run
from orchestrator import reports

CELLS = 5000
ROUNDS = 5

FILTERS = {
    "text": "find('triton')",
    "text of a log": "find('05:14:42')",
    "all again": "find('')",
    "verdict": "press('.tally.failed')",
    "a second one": "press('.tally.not-run')",
    "category": "press('.categories .chip')",
    "none": "press('.tally.total'); press('.categories .chip')",
    "vendor": "press('.menu:nth-of-type(3) input')",
}
VIEWS = {
    "unfold all": "press('[data-key=\"unfold all\"]')",
    "words": "press('[data-key=\"show words\"]')",
    "signs": "press('[data-key=\"show signs\"]')",
    "differences": "press('[data-key=\"view differences\"]')",
    "list": "press('[data-key=\"view list\"]')",
    "matrix": "press('[data-key=\"view matrix\"]')",
}

OPENED = """async () => {
  const painted = () => performance.getEntriesByName("drawn");
  while (!painted().length) await new Promise((next) => setTimeout(next));
  return painted()[0].startTime;
}"""
PAINTED = """async (act) => {
  const painted = () => performance.getEntriesByName("drawn").length;
  const press = (selector) => document.querySelector(selector).click();
  const find = (text) => {
    const box = document.getElementById("search");
    box.value = text;
    box.dispatchEvent(new Event("input"));
  };
  const before = painted();
  const began = performance.now();
  new Function("press", "find", act)(press, find);
  while (painted() === before) await new Promise((next) => setTimeout(next));
  return performance.getEntriesByName("drawn").at(-1).startTime - began;
}"""

Took = dict[str, list[float]]


def main(cells: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = made_up_run.write(Path(folder), cells)
        began = time.monotonic()
        reports.write_all(run)
        _say(f"all reports of {cells} cells were written in {time.monotonic() - began:.1f} s")
        file = run.path / "matrix.html"
        with browser.opened() as chromium:
            took = measure(chromium, file, ROUNDS)
        mib = file.stat().st_size / 2**20
    for act, all_ms in took.items():
        _say(f"{act:16}{statistics.median(all_ms):6.0f} ms, at most {max(all_ms):.0f}")
    print(json.dumps({**figures(took), "mib": round(mib, 2)}))  # noqa: T201  # what it is for


def measure(chromium: Browser, file: Path, rounds: int) -> Took:
    """Milliseconds of each act, one of each round."""
    took: Took = defaultdict(list)
    for _ in range(rounds):
        page = chromium.new_page(viewport={"width": 1440, "height": 900})
        page.goto(file.as_uri())
        took["open"].append(page.evaluate(OPENED))
        for act, script in (FILTERS | VIEWS).items():
            took[act].append(_painted(page, script))
        page.close()
    return took


def figures(took: Took) -> dict[str, int]:
    middle = {act: statistics.median(all_ms) for act, all_ms in took.items()}
    return {
        "open_ms": round(middle["open"]),
        "filter_ms": round(max(middle[act] for act in FILTERS)),
        "view_ms": round(max(middle[act] for act in VIEWS)),
    }


def _painted(page: Page, act: str) -> float:
    return float(page.evaluate(PAINTED, act))


def _say(line: str) -> None:
    print(line, file=sys.stderr)  # noqa: T201  # it takes a minute


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else CELLS)
