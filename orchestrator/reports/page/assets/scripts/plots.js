// Small plots: where the seconds of a cell went, and how it stands among all of them.

import { cells } from "./data.js";
import { h, svg } from "./dom.js";
import { seconds } from "./words.js";

const WIDTH = 480;
const FEW = 8;

export function phases(times, failedIn) {
  const entries = Object.entries(times);
  const total = entries.reduce((sum, [, s]) => sum + s, 0);
  if (!total) return null;
  let left = 0;
  const parts = entries.map(([name, s], n) => {
    const width = (s / total) * WIDTH;
    const part = svg(
      "rect",
      {
        x: left,
        y: 0,
        width: Math.max(width - 1, 0.5),
        height: 18,
        class: tone(name, n, failedIn),
      },
      svg("title", null, `${name} ${seconds(s)}`),
    );
    left += width;
    return part;
  });
  return h(
    "div",
    { class: "plot" },
    svg(
      "svg",
      {
        viewBox: `0 0 ${WIDTH} 18`,
        class: "phases",
        preserveAspectRatio: "none",
        role: "img",
        "aria-label": "Seconds by phase",
      },
      parts,
    ),
    h(
      "ul",
      { class: "phases" },
      entries.map(([name, s], n) =>
        h("li", { class: tone(name, n, failedIn) }, h("i"), `${name} `, h("b", null, seconds(s))),
      ),
    ),
  );
}

function tone(name, n, failedIn) {
  return name === failedIn ? "broke" : `tone${n % 5}`;
}

let sorted = null;

// Every cell's seconds as a tick, on a logarithmic scale.
export function among(cell) {
  sorted ??= cells
    .map((each) => each.seconds)
    .filter((s) => s > 0)
    .sort((one, other) => one - other);
  if (!(cell.seconds > 0) || sorted.length < FEW || sorted[0] === sorted.at(-1)) return null;
  const low = Math.log(sorted[0]);
  const x = (s) => 6 + ((Math.log(s) - low) / (Math.log(sorted.at(-1)) - low)) * (WIDTH - 12);
  const places = [...new Set(sorted.map((s) => Math.round(x(s))))];
  const middle = sorted[Math.floor(sorted.length / 2)];
  const faster = sorted.filter((s) => s < cell.seconds).length;
  return h(
    "figure",
    { class: "among" },
    svg(
      "svg",
      {
        viewBox: `0 0 ${WIDTH} 34`,
        role: "img",
        "aria-label": `Seconds of all cells; this one ${seconds(cell.seconds)}`,
      },
      svg("path", { class: "ticks", d: places.map((place) => `M${place} 12v10`).join("") }),
      svg("path", { class: "middle", d: `M${x(middle)} 10v14` }),
      svg("path", { class: "here", d: `M${x(cell.seconds)} 6v22` }),
      svg("circle", { class: "here", cx: x(cell.seconds), cy: 5, r: 4 }),
    ),
    h(
      "figcaption",
      null,
      h("span", null, seconds(sorted[0])),
      h(
        "span",
        null,
        `${faster} of ${sorted.length} cells were faster, half took up to ${seconds(middle)}`,
      ),
      h("span", null, seconds(sorted.at(-1))),
    ),
  );
}
