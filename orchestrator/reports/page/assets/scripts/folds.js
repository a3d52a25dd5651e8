// Which groups of rows are folded: what a reader chose, or else those of a long table with no news.

import { h } from "./dom.js";
import { inDifferences } from "./facets.js";
import { layoutName } from "./pivot.js";
import { stands } from "./signs.js";
import { change } from "./state.js";

const ROWS_OPEN = 60;

const chosen = new Map();

export function isFolded(group, shown) {
  const rows = shown.groups.reduce((sum, each) => sum + each.rows.length, 0);
  return chosen.get(key(group.name)) ?? (rows > ROWS_OPEN && !hasNews(group, shown));
}

function hasNews(group, shown) {
  return group.rows.some((row) =>
    shown.columns.some((column) => {
      const cell = shown.at(row, column);
      return cell && stands(cell);
    }),
  );
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
