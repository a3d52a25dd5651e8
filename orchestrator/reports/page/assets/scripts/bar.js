// Search, the choice of a view and what belongs to it, and the filters that are on.

import { pair, pairs } from "./changes.js";
import { h, put } from "./dom.js";
import { applies, FACETS, inDifferences } from "./facets.js";
import { foldAll } from "./folds.js";
import { LAYOUTS, layoutName } from "./pivot.js";
import { change, state, toggle } from "./state.js";

const TYPING_MS = 60;

let waiting = 0;

export const box = h("input", {
  type: "search",
  id: "search",
  placeholder: "Find: TRITON, gfx942, a message …",
  "aria-label": "Find cells by text",
  autocomplete: "off",
  spellcheck: "false",
  oninput: () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => change({ q: box.value }), TYPING_MS);
  },
});

export function draw(place) {
  if (document.activeElement !== box) box.value = state.q;
  put(
    place,
    choice("view", "View", views(), views().includes(state.view) ? state.view : "matrix"),
    inDifferences() ? builds() : null,
    state.view === "list"
      ? null
      : [
          select("across", "Across", [...LAYOUTS.keys()], layoutName()),
          choice("show", "Cells as", ["words", "signs"], shownAs()),
          folding(),
        ],
  );
}

export function drawChosen(place) {
  const chosen = [...state.filters].filter(([facet]) => applies(facet));
  const chips = chosen.flatMap(([facet, values]) =>
    [...values].map((value) => chip(`${FACETS.get(facet)}: ${value}`, () => toggle(facet, value))),
  );
  if (state.q) chips.push(chip(`Text: ${state.q}`, () => change({ q: "" })));
  if (chips.length > 1) {
    chips.push(h("button", { class: "plain", "data-key": "clear", onclick: clear }, "clear all"));
  }
  put(place, chips);
}

export function clear() {
  box.value = "";
  change({ filters: new Map(), q: "" });
}

function views() {
  return ["matrix", ...(pairs.length ? ["differences"] : []), "list"];
}

function shownAs() {
  if (state.show) return state.show;
  return document.querySelector("table.matrix.signs") ? "signs" : "words";
}

function folding() {
  const button = (title, folded) =>
    h("button", { class: "plain", "data-key": title, onclick: () => foldAll(folded) }, title);
  return h("span", { class: "folding" }, button("fold all", true), button("unfold all", false));
}

function builds() {
  const { before, after } = pair();
  const earlier = [...new Set(pairs.map((each) => each.before))];
  const afters = pairs.filter((each) => each.before === before).map((each) => each.after);
  const to = (from) => pairs.filter((each) => each.before === from).map((each) => each.after);
  return [
    select("from", "From", earlier, before, (from) => ({
      from,
      to: to(from).includes(after) ? after : to(from).at(-1),
    })),
    select("to", "to", afters, after, (value) => ({ from: before, to: value })),
  ];
}

function choice(key, title, values, current) {
  return h(
    "div",
    { class: "choice", role: "group", "aria-label": title },
    values.map((value) =>
      h(
        "button",
        {
          "data-key": `${key} ${value}`,
          "aria-pressed": String(value === current),
          onclick: () => change({ [key]: value }),
        },
        value,
      ),
    ),
  );
}

function select(key, title, values, current, parts = (value) => ({ [key]: value })) {
  const options = values.map((value) => h("option", { value, selected: value === current }, value));
  const list = h("select", { "data-key": key, onchange: () => change(parts(list.value)) }, options);
  return h("label", { class: "select" }, h("span", null, title), list);
}

function chip(text, remove) {
  const title = `Take away ${text}`;
  return h(
    "button",
    { class: "chip on", "data-key": `chip ${text}`, "aria-label": title, title, onclick: remove },
    text,
    h("span", { "aria-hidden": "true" }, "×"),
  );
}
