// By keyboard: walk the table with arrows, and single keys for what is done often.

import { byId, cells } from "./data.js";
import { box, clear } from "./bar.js";
import { h } from "./dom.js";
import { close as closeMenus } from "./menus.js";
import { panel } from "./panel.js";
import { stands } from "./signs.js";
import { change, state } from "./state.js";

const HELP = [
  ["arrows", "walk the table; with an open cell, it follows"],
  ["Enter", "open the cell, or fold its group"],
  ["Esc", "close, go back, take all filters away"],
  ["/", "find"],
  ["n, p", "next, previous cell that did not simply pass"],
  ["m, d, l", "matrix, differences, list"],
  ["?", "this help"],
];

const VIEWS = { m: "matrix", d: "differences", l: "list" };

const help = h(
  "dialog",
  { class: "help", "aria-label": "Keys", onclick: () => help.close() },
  h("h2", null, "Keys"),
  h(
    "dl",
    null,
    HELP.map(([keys, what]) => h("div", null, h("dt", null, keys), h("dd", null, what))),
  ),
);

document.body.append(help);

export function button() {
  return h("button", { class: "plain", onclick: () => help.showModal() }, "keys: ?");
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
  if (event.key === "Escape") return escape(event);
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return undefined;
  const done = single(event) || walk(event);
  if (done) event.preventDefault();
  return undefined;
});

function escape(event) {
  if (closeMenus()) return;
  const number = byId.get(state.cell)?.number;
  if (state.cell !== null) {
    change({ cell: null });
    focusOn(number);
  } else if (state.q || state.filters.size) clear();
  if (event.target === box) box.blur();
}

function single({ key }) {
  if (key === "/") return box.focus() ?? box.select() ?? true;
  if (key === "?") return help.showModal() ?? true;
  if (key in VIEWS) return change({ view: VIEWS[key] }) ?? true;
  if (key === "n" || key === "p") return step(key === "n" ? 1 : -1);
  return false;
}

function step(by) {
  const wanted = tds().filter((td) => stands(cells[td.dataset.cell]) && !td.matches(".other"));
  if (!wanted.length) return false;
  const here = wanted.findIndex((td) => Number(td.dataset.cell) === byId.get(state.cell)?.number);
  const next = here < 0 && by < 0 ? wanted.at(-1) : wanted.at((here + by) % wanted.length);
  change({ cell: cells[next.dataset.cell].id });
  focusOn(Number(next.dataset.cell));
  return true;
}

function walk(event) {
  const from = event.target.closest("[data-cell], [data-fold]");
  if (!from?.closest("table.matrix")) return false;
  if (event.key === "Enter" || event.key === " ") return enter(from);
  const to = neighbour(from, event.key);
  if (!to) return event.key.startsWith("Arrow");
  land(to);
  return true;
}

function enter(from) {
  if (from.dataset.fold !== undefined) return from.click() ?? true;
  change({ cell: cells[from.dataset.cell].id });
  panel.querySelector("h2")?.focus();
  return true;
}

function neighbour(from, key) {
  const row = from.closest("tr");
  const stops = (line) => [...line.querySelectorAll("[data-cell], [data-fold]")];
  const lines = [...from.closest("table").querySelectorAll("tbody tr")].filter(
    (line) => stops(line).length,
  );
  const line = lines.indexOf(row);
  const here = stops(row);
  const column = from.closest("td, th").cellIndex;
  const nearest = (other) =>
    other && stops(other).toSorted((a, b) => away(a, column) - away(b, column))[0];
  switch (key) {
    case "ArrowLeft":
      return here[here.indexOf(from) - 1];
    case "ArrowRight":
      return here[here.indexOf(from) + 1];
    case "ArrowUp":
      return nearest(lines[line - 1]);
    case "ArrowDown":
      return nearest(lines[line + 1]);
    case "Home":
      return here[0];
    case "End":
      return here.at(-1);
    default:
      return undefined;
  }
}

function away(stop, column) {
  return Math.abs(stop.closest("td, th").cellIndex - column);
}

function land(to) {
  if (to.dataset.cell !== undefined && state.cell !== null) {
    change({ cell: cells[to.dataset.cell].id });
    focusOn(Number(to.dataset.cell));
    return;
  }
  focus(to);
}

export function focusOn(number) {
  const td = tds().find((each) => Number(each.dataset.cell) === number);
  if (td) focus(td);
}

function focus(element) {
  document.querySelector('table.matrix [tabindex="0"]')?.setAttribute("tabindex", "-1");
  element.setAttribute("tabindex", "0");
  element.focus({ preventScroll: true });
  element.scrollIntoView({ block: "nearest", inline: "nearest" });
}

// One place of the table can be reached with Tab: where the reader was, or its first.
export function anchor() {
  if (document.querySelector('table.matrix [tabindex="0"]')) return;
  const number = byId.get(state.cell)?.number;
  const wanted = document.querySelector(`table.matrix [data-cell="${number}"]`);
  (
    wanted ?? document.querySelector("table.matrix [data-fold], table.matrix [data-cell]")
  )?.setAttribute("tabindex", "0");
}

function tds() {
  return [...document.querySelectorAll("table.matrix td[data-cell], table.list tr[data-cell] a")];
}
