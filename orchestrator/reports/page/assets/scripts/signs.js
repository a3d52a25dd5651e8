// A shape and a colour for each kind of cell, and of change; the shape alone is enough.

import { changeOf, UNCHANGED } from "./changes.js";
import { run } from "./data.js";
import { h } from "./dom.js";
import { inDifferences } from "./facets.js";

export const CHANGES = run.kinds;

// In the order in which people look at them.
export const SIGNS = ["failed", "not-run", "excused", "as-expected", "passed"];

export function signOf(cell) {
  return inDifferences() ? signOfChange(changeOf(cell).kind) : cell.sign;
}

export function signOfChange(kind) {
  return kind === "predicted ≠ observed" ? "mispredicted" : kind.replaceAll(" ", "-");
}

export function said(cell) {
  return inDifferences() ? changeOf(cell).kind : cell.verdict;
}

export function sign(name) {
  return h("span", { class: `sign ${name}`, "aria-hidden": "true" });
}

// Whether a cell is one that a reader should not miss.
export function stands(cell) {
  const quiet = inDifferences() ? [UNCHANGED] : ["passed", "as-expected"];
  return !quiet.includes(signOf(cell));
}
