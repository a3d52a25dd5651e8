// One menu for each facet that has something to choose.

import { h, put } from "./dom.js";
import { applies, FACETS, inView, valueOf } from "./facets.js";
import { only, state, toggle } from "./state.js";

const OPEN = ["vendor", "card", "model", "backend", "build"];

let menus = [];
let drawnFor = "";

export function draw(place, { counts }) {
  const wanted = [state.view, state.from, state.to].join("\n");
  if (drawnFor !== wanted) {
    drawnFor = wanted;
    menus = [...FACETS]
      .filter(([facet]) => worthIt(facet))
      .map(([facet, title]) => menu(facet, title));
    put(
      place,
      menus.map((each) => each.element),
      h(
        "button",
        { class: "plain all", onclick: () => place.classList.toggle("whole") },
        "all filters",
      ),
    );
  }
  menus.forEach((each) => each.update(counts.get(each.facet)));
}

export function close() {
  const open = menus.filter((each) => each.element.open);
  open.forEach((each) => {
    each.element.open = false;
    each.element.querySelector("summary").focus();
  });
  return open.length > 0;
}

addEventListener("click", (event) => {
  for (const each of menus) if (!each.element.contains(event.target)) each.element.open = false;
});

function worthIt(facet) {
  if (!applies(facet)) return false;
  const values = new Set(inView().map((cell) => valueOf(cell, facet)));
  return values.size > 1 && !(facet === "arch" && !differsFromCard());
}

function differsFromCard() {
  const cards = new Set(inView().map((cell) => cell.card));
  return new Set(inView().map((cell) => cell.arch)).size < cards.size;
}

function menu(facet, title) {
  const values = [...new Set(inView().map((cell) => valueOf(cell, facet)))];
  const items = values.map((value) => item(facet, value));
  const chosen = h("b");
  const element = h(
    "details",
    { class: OPEN.includes(facet) ? "menu" : "menu more", name: "facets" },
    h("summary", { "data-key": `menu ${facet}` }, title, chosen),
    h(
      "div",
      { class: "choices", role: "group", "aria-label": title },
      h("button", { class: "plain", onclick: () => only(facet, []) }, "all"),
      items.map((each) => each.element),
    ),
  );
  return {
    facet,
    element,
    update(counts) {
      const wanted = state.filters.get(facet);
      chosen.textContent = wanted ? String(wanted.size) : "";
      element.classList.toggle("chosen", Boolean(wanted));
      items.forEach((each) => each.update(counts.get(each.value) ?? 0, wanted));
    },
  };
}

function item(facet, value) {
  const box = h("input", { type: "checkbox", onchange: () => toggle(facet, value) });
  const number = h("small");
  const element = h("label", null, box, h("span", null, value), number);
  return {
    value,
    element,
    update(count, wanted) {
      box.checked = wanted?.has(value) ?? false;
      number.textContent = String(count);
      element.classList.toggle("empty", count === 0);
    },
  };
}
