// One line for each cell, to sort and to read on a phone.

import { h, put } from "./dom.js";
import { said, sign, signOf, SIGNS } from "./signs.js";
import { change, state } from "./state.js";
import { breakable, got, seconds } from "./words.js";

const AT_ONCE = 200;

const COLUMNS = [
  ["cell", (cell) => cell.number],
  ["verdict", (cell) => SIGNS.indexOf(cell.sign)],
  ["target got", (cell) => cell.target],
  ["draft got", (cell) => cell.draft],
  ["layout, runner", (cell) => `${cell.layout ?? "~"} ${cell.runner ?? ""}`],
  ["seconds", (cell) => -(cell.seconds ?? -1)],
];

let shown = AT_ONCE;
let drawn = [];

export function inOrder() {
  return drawn;
}

export function draw(place, fitting) {
  const [title, by] = COLUMNS.find(([name]) => name === state.sort) ?? COLUMNS[1];
  const cells = [...fitting].sort(
    (one, other) => compare(by(one), by(other)) || one.number - other.number,
  );
  const some = cells.slice(0, shown);
  drawn = some;
  put(
    place,
    h(
      "div",
      { class: "scroll" },
      h(
        "table",
        { class: "list" },
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            COLUMNS.map(([name]) => heading(name, name === title)),
          ),
        ),
        h("tbody", null, some.map(line)),
      ),
    ),
    cells.length > shown &&
      h(
        "button",
        { class: "plain", "data-key": "more", onclick: more },
        `${cells.length - shown} more`,
      ),
  );
}

function more() {
  shown *= 5;
  change({});
}

function compare(one, other) {
  if (typeof one === "number") return one - other;
  return one < other ? -1 : one > other ? 1 : 0;
}

function heading(name, sorted) {
  return h(
    "th",
    { scope: "col", "aria-sort": sorted ? "ascending" : null },
    h("button", { "data-key": `sort ${name}`, onclick: () => change({ sort: name }) }, name),
  );
}

function line(cell) {
  return h(
    "tr",
    {
      class: `cell ${signOf(cell)}`,
      "data-cell": cell.number,
      "aria-selected": state.cell === cell.id ? "true" : null,
    },
    h("td", null, h("a", { href: `#${cell.id}`, "data-cell": cell.number }, breakable(cell.id))),
    h(
      "td",
      { class: "said" },
      sign(signOf(cell)),
      said(cell),
      cell.category && h("small", null, cell.category),
    ),
    h("td", null, got(cell.target)),
    h("td", null, got(cell.draft)),
    h("td", null, [cell.layout, cell.runner].filter((part) => part).join(" ")),
    h("td", { class: "number" }, seconds(cell.seconds)),
  );
}
