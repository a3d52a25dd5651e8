// Which groups are folded: what a reader chose, or else those of a long table that have no news.
// Of very many cells all are, which makes an overview.

import { h } from "./dom.js";
import { inDifferences } from "./facets.js";
import { LAYOUTS, layoutName } from "./pivot.js";
import { stands } from "./signs.js";
import { change } from "./state.js";

const CELLS_OPEN = 1500;
const ROWS_OPEN = 60;

const chosen = new Map();

export function isFolded(group, { shown, fitting }) {
  const rows = shown.groups.reduce((sum, each) => sum + each.rows.length, 0);
  const many = fitting.size > CELLS_OPEN || (rows > ROWS_OPEN && !hasNews(group));
  return chosen.get(key(group.name)) ?? (many && shown.groups.length > 1);
}

function hasNews(group) {
  return group.rows.some((row) => [...row.cells.values()].some(stands));
}

export function foldButton(name, folded) {
  const attributes = {
    class: "fold",
    tabindex: "-1",
    "aria-expanded": String(!folded),
    "data-fold": name,
    onclick: () => foldThese([name], !folded),
  };
  return h("button", attributes, name);
}

export function unfoldFor(cell) {
  foldThese([cell[LAYOUTS.get(layoutName()).group]], false);
}

// The sums of a group unfold it, too.
addEventListener("click", ({ target }) => {
  const sum = target.closest("[data-unfold]");
  if (sum) foldThese([sum.dataset.unfold], false);
});

export function foldAll(folded) {
  const names = [...document.querySelectorAll("[data-fold]")].map((each) => each.dataset.fold);
  foldThese(names, folded);
}

function foldThese(names, folded) {
  for (const name of names) chosen.set(key(name), folded);
  change({});
}

function key(name) {
  return [inDifferences(), layoutName(), name].join("\n");
}
