// What cells can be filtered by, and how many of each are left.

import { cells } from "./data.js";
import { changeOf, compared, pair, pairs } from "./changes.js";
import { finder } from "./search.js";
import { state } from "./state.js";

const NONE = "none";

export const FACETS = new Map([
  ["change", "Change"],
  ["verdict", "Verdict"],
  ["category", "Category"],
  ["vendor", "Vendor"],
  ["arch", "Architecture"],
  ["card", "Card"],
  ["model", "Model"],
  ["backend", "Backend"],
  ["build", "Build"],
  ["target", "Target got"],
  ["draft", "Draft got"],
  ["others", "Other requests"],
  ["layout", "KV layout"],
  ["runner", "Runner"],
  ["mode", "Engine"],
  ["gate", "Gate"],
  ["prediction", "Prediction"],
]);

export function inDifferences() {
  return state.view === "differences" && pairs.length > 0;
}

export function inView() {
  return inDifferences() ? compared() : cells;
}

// Of two builds that are compared, neither can be filtered away.
export function applies(facet) {
  if (!FACETS.has(facet)) return false;
  return facet === "build"
    ? !inDifferences() || pair().build === null
    : facet !== "change" || inDifferences();
}

export function valueOf(cell, facet) {
  if (facet === "change") return inDifferences() ? changeOf(cell).kind : NONE;
  return cell[facet] || NONE;
}

// The cells that fit, and of each facet its values with how many would fit beside them.
export function sift() {
  const chosen = [...state.filters].filter(([facet]) => applies(facet));
  const holds = finder(state.q);
  const counts = new Map([...FACETS.keys()].map((facet) => [facet, new Map()]));
  const fitting = new Set();
  for (const cell of inView()) {
    const misses = chosen.filter(([facet, values]) => !values.has(valueOf(cell, facet)));
    const found = misses.length < 2 && holds(cell.number);
    if (found && !misses.length) fitting.add(cell);
    for (const [facet, values] of counts) {
      const value = valueOf(cell, facet);
      const counted = found && misses.every(([missed]) => missed === facet);
      values.set(value, (values.get(value) ?? 0) + (counted ? 1 : 0));
    }
  }
  return { fitting, counts };
}
