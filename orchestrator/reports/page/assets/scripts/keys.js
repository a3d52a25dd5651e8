// By keyboard: walk the table with arrows, and single keys for what is done often.

import { pairs } from "./changes.js";
import { byId } from "./data.js";
import { box, clear } from "./bar.js";
import { h } from "./dom.js";
import { close as closeMenus } from "./menus.js";
import { change, state } from "./state.js";
import { step } from "./troubles.js";
import { focusOn, walk } from "./walk.js";

const HELP = [
  ["arrows", "walk the table; with an open cell, it follows"],
  ["Enter", "open the cell, or fold its group"],
  ["Esc", "close, go back, take all filters away"],
  ["/", "find"],
  ["n, p", "next, previous cell that did not simply pass"],
  ["m, d, l", "matrix, differences, list"],
  ["?", "this help"],
];

const VIEWS = { m: "matrix", d: "differences", l: "list" };

const help = h(
  "dialog",
  { class: "help", "aria-label": "Keys", onclick: () => help.close() },
  h("h2", null, "Keys"),
  h(
    "dl",
    null,
    HELP.map(([keys, what]) => h("div", null, h("dt", null, keys), h("dd", null, what))),
  ),
);

document.body.append(help);

export function button() {
  return h("button", { class: "plain", onclick: () => help.showModal() }, "keys: ?");
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
  if (event.key === "Escape") return escape(event);
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return undefined;
  const done = single(event) || walk(event);
  if (done) event.preventDefault();
  return undefined;
});

function escape(event) {
  if (closeMenus()) return;
  const number = byId.get(state.cell)?.number;
  if (state.cell !== null) {
    change({ cell: null });
    focusOn(number);
  } else if (state.q || state.filters.size) clear();
  if (event.target === box) box.blur();
}

function single({ key }) {
  if (key === "/") return box.focus() ?? box.select() ?? true;
  if (key === "?") return help.showModal() ?? true;
  if (key in VIEWS && (key !== "d" || pairs.length)) return change({ view: VIEWS[key] }) ?? true;
  if (key === "n" || key === "p") return step(key === "n" ? 1 : -1);
  return false;
}
