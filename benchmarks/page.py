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

from playwright.sync_api import Browser
from playwright.sync_api import Page as Tab

from benchmarks import browser, made_up_run
from orchestrator import reports
from orchestrator.kept.run_directory import RunDirectory
from orchestrator.reports import page
from orchestrator.run import conclude

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
        _say(f"making up a run of {cells} cells ...")
        run = made_up_run.write(Path(folder), cells)
        file, make_s = written(run)
        with browser.opened() as chromium:
            took = measure(chromium, file, ROUNDS)
        mib = file.stat().st_size / 2**20
    for act, all_ms in took.items():
        _say(f"{act:16}{statistics.median(all_ms):6.0f} ms, at most {max(all_ms):.0f}")
    last = {**figures(took), "mib": round(mib, 2), "make_s": round(make_s, 1)}
    print(json.dumps(last))  # noqa: T201  # it is what this is for


def written(run: RunDirectory) -> tuple[Path, float]:
    """The page of a run, and the seconds of its making."""
    result = conclude(run)
    report = reports.document_of(run, result)
    began = time.monotonic()
    run.write("matrix.html", page.to_html(run, result, report))
    return run.path / "matrix.html", time.monotonic() - began


def measure(chromium: Browser, file: Path, rounds: int) -> Took:
    """Milliseconds of each act, one of each round."""
    took: Took = defaultdict(list)
    for _ in range(rounds):
        tab = chromium.new_page(viewport={"width": 1440, "height": 900})
        tab.goto(file.as_uri())
        took["open"].append(tab.evaluate(OPENED))
        for act, script in (FILTERS | VIEWS).items():
            took[act].append(_painted(tab, script))
        tab.close()
    return took


def figures(took: Took) -> dict[str, int]:
    middle = {act: statistics.median(all_ms) for act, all_ms in took.items()}
    return {
        "open_ms": round(middle["open"]),
        "filter_ms": round(max(middle[act] for act in FILTERS)),
        "view_ms": round(max(middle[act] for act in VIEWS)),
    }


def _painted(tab: Tab, act: str) -> float:
    return float(tab.evaluate(PAINTED, act))


def _say(line: str) -> None:
    print(line, file=sys.stderr)  # noqa: T201  # it takes a minute


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else CELLS)
