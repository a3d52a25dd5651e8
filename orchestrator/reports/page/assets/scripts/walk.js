// The arrow keys: one place of the table has the focus, and the others are reached from it.

import { byId, cells } from "./data.js";
import { unfoldFor } from "./folds.js";
import { panel } from "./panel.js";
import { change, state } from "./state.js";

export function walk(event) {
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

// Also where its group was folded.
export function focusOn(number) {
  if (!stop(number)) unfoldFor(cells[number]);
  if (stop(number)) focus(stop(number));
}

function stop(number) {
  return document.querySelector(
    `table.matrix td[data-cell="${number}"], table.list a[data-cell="${number}"]`,
  );
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
