// One cell in the table: its sign, and what there is to say of it in a few words.

import { changeOf, UNCHANGED } from "./changes.js";
import { h } from "./dom.js";
import { inDifferences } from "./facets.js";
import { said, signOf } from "./signs.js";
import { state } from "./state.js";
import { differing, got } from "./words.js";

export function place(cell, isFirst, view) {
  const edge = isFirst ? " first" : "";
  if (!cell) return h("td", { class: `nothing${edge}` });
  const fits = view.fitting.has(cell);
  const told = text(cell);
  return h(
    "td",
    {
      class: `cell ${signOf(cell)}${edge}${fits ? "" : " other"}`,
      "data-cell": cell.number,
      "aria-selected": state.cell === cell.id ? "true" : null,
      "aria-label": `${said(cell)}: ${told.join("; ") || cell.id}`,
    },
    view.words && fits ? told.map((line) => h("span", { class: "line" }, set(line))) : null,
  );
}

// Where only signs are, the words come under the pointer.
export function name(td, cell) {
  if (!td.childElementCount) td.title = `${cell.id}\n${said(cell)}\n${text(cell).join("\n")}`;
}

// What there is to say of a cell in the table, line by line.
function text(cell) {
  if (inDifferences() && changeOf(cell).kind !== UNCHANGED) return turns(changeOf(cell).lines);
  const lines = [
    cell.target === "-" ? "" : cell.target,
    cell.draft === "-" ? "" : `draft ${cell.draft}`,
    ...cell.others.split(", "),
  ].filter((line) => line);
  const kind = cell.sign === "passed" ? "" : (cell.category ?? cell.verdict);
  return lines.length && cell.sign === "as-expected"
    ? lines
    : [...lines, kind].filter((line) => line);
}

// What turned into what; the panel has the rest.
function turns(lines) {
  const found = lines.filter((line) => line.includes(" → "));
  return found.length ? found : lines;
}

function set(line) {
  if (inDifferences() && line.includes(" → ")) return differing(line);
  const draft = line.startsWith("draft ");
  const words = got(draft ? line.slice(6) : line);
  return draft ? [h("i", { class: "owner" }, "draft "), ...words] : words;
}
