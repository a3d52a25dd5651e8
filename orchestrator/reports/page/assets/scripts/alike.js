// Below the table: cells that failed alike, or changed alike, stand together.

import { changeOf, pair, UNCHANGED } from "./changes.js";
import { h, put } from "./dom.js";
import { inDifferences } from "./facets.js";
import { said, sign, signOf, SIGNS, CHANGES, signOfChange } from "./signs.js";
import { linkTo } from "./state.js";
import { count } from "./words.js";

const GROUPS = 40;
const NAMED = 12;

export function draw(place, fitting) {
  const groups = Map.groupBy([...fitting].filter(told), (cell) => JSON.stringify(what(cell)));
  if (!groups.size) {
    put(place);
    return;
  }
  const order = inDifferences() ? CHANGES.map(signOfChange) : SIGNS;
  const ordered = [...groups.values()].sort(
    (one, other) =>
      order.indexOf(signOf(one[0])) - order.indexOf(signOf(other[0])) || other.length - one.length,
  );
  const title = inDifferences()
    ? `What changed from ${pair().before} to ${pair().after}`
    : "What did not simply run";
  put(
    place,
    h(
      "section",
      { class: "alike", "aria-label": title },
      h("h2", null, title),
      ordered.slice(0, GROUPS).map(block),
      ordered.length > GROUPS &&
        h(
          "p",
          { class: "quiet" },
          `And ${count(ordered.length - GROUPS, "other group")}: filter to see them.`,
        ),
    ),
  );
}

function told(cell) {
  return inDifferences() ? changeOf(cell).kind !== UNCHANGED : cell.sign !== "passed";
}

function what(cell) {
  if (!inDifferences()) return [said(cell), cell.category, cell.why];
  const { kind, lines } = changeOf(cell);
  return [kind, "", lines.join("\n")];
}

function block(alike) {
  const [kind, category, why] = what(alike[0]);
  return h(
    "article",
    { class: `group ${signOf(alike[0])}` },
    h(
      "h3",
      null,
      sign(signOf(alike[0])),
      h("b", null, String(alike.length)),
      ` ${kind}`,
      category && h("span", { class: "kind" }, category),
    ),
    why && h("p", { class: "why" }, why),
    h("p", { class: "cells" }, alike.slice(0, NAMED).map(link), rest(alike)),
  );
}

function rest(alike) {
  if (alike.length <= NAMED) return null;
  const others = alike.slice(NAMED);
  const button = h(
    "button",
    { class: "plain", onclick: () => button.replaceWith(...others.map(link)) },
    `and ${others.length} more`,
  );
  return button;
}

function link(cell) {
  return h("a", { href: linkTo(cell.id), "data-cell": cell.number }, cell.id);
}
