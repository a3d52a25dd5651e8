// How many of each kind: a bar of the whole, and counts that filter when pressed.

import { h, put } from "./dom.js";
import { FACETS, inDifferences, inView, valueOf } from "./facets.js";
import { CHANGES, sign, signOf, signOfChange, SIGNS } from "./signs.js";
import { only, state, toggle } from "./state.js";

export function draw(place, { fitting, counts }) {
  const facet = inDifferences() ? "change" : "verdict";
  const kinds = ordered(facet);
  const tallies = h(
    "div",
    { class: "tallies", role: "group", "aria-label": FACETS.get(facet) },
    total(fitting, facet),
    kinds.map(({ value, name }) => tally(facet, value, name, counts)),
  );
  put(place, bar(fitting, kinds), h("div", { class: "told" }, tallies, categories(counts)));
}

// The kinds that occur in the view, with the name of their sign; what matters most comes first.
function ordered(facet) {
  const names = new Map();
  for (const cell of inView()) {
    const value = valueOf(cell, facet);
    names.set(value, facet === "change" ? signOfChange(value) : signOf(cell));
  }
  const order = facet === "change" ? CHANGES.map(signOfChange) : SIGNS;
  return [...names]
    .map(([value, name]) => ({ value, name }))
    .sort((one, other) => order.indexOf(one.name) - order.indexOf(other.name));
}

function total(fitting, facet) {
  const all = inView().length;
  const some = fitting.size === all ? "" : ` of ${all}`;
  return h(
    "button",
    {
      class: "tally total",
      "data-key": "total",
      "aria-pressed": String(!state.filters.has(facet)),
      onclick: () => only(facet, []),
    },
    h("b", null, String(fitting.size)),
    h("span", null, `${some ? some.trim() + " " : ""}${all === 1 ? "cell" : "cells"}`),
  );
}

function tally(facet, value, name, counts) {
  return h(
    "button",
    {
      class: `tally ${name}`,
      "data-key": `tally ${value}`,
      "aria-pressed": String(state.filters.get(facet)?.has(value) ?? false),
      onclick: () => toggle(facet, value),
    },
    h("b", null, String(counts.get(facet).get(value) ?? 0)),
    h("span", null, sign(name), value),
  );
}

function bar(fitting, kinds) {
  const facet = inDifferences() ? "change" : "verdict";
  const parts = Map.groupBy(fitting, (cell) => valueOf(cell, facet));
  const pieces = kinds.filter(({ value }) => parts.has(value));
  const spectrum = h("div", { class: "spectrum", "aria-hidden": "true" });
  for (const { value, name } of pieces) {
    const piece = h("i", { class: name, title: `${parts.get(value).length} ${value}` });
    piece.style.flexGrow = parts.get(value).length;
    spectrum.append(piece);
  }
  return spectrum;
}

function categories(counts) {
  const found = [...counts.get("category")].filter(([value]) => value !== "none");
  if (!found.length) return null;
  return h(
    "div",
    { class: "categories", role: "group", "aria-label": "Category" },
    found
      .sort((one, other) => other[1] - one[1])
      .map(([value, number]) =>
        h(
          "button",
          {
            class: "chip",
            "data-key": `category ${value}`,
            "aria-pressed": String(state.filters.get("category")?.has(value) ?? false),
            onclick: () => toggle("category", value),
          },
          value,
          h("b", null, String(number)),
        ),
      ),
  );
}
