// What a click on a cell tells, at the side of the table, or over it on a phone.

import { byId, detail } from "./data.js";
import { history } from "./builds.js";
import { copied } from "./clipboard.js";
import { h, put } from "./dom.js";
import { inDifferences } from "./facets.js";
import { alone, blocks, changed, failure, gate, groups, requests, time } from "./sections.js";
import { sign } from "./signs.js";
import { speak } from "./speak.js";
import { change, state } from "./state.js";
import { breakable } from "./words.js";

export const panel = document.getElementById("panel");

export function draw() {
  const cell = state.cell === null ? null : byId.get(state.cell);
  panel.hidden = state.cell === null;
  document.body.classList.toggle("aside", !panel.hidden);
  if (panel.hidden) return put(panel);
  const lines = cell ? story(cell) : [h("p", null, `This run has no cell ${state.cell}.`)];
  put(panel, top(cell), h("div", { class: "story" }, lines));
  panel.scrollTop = 0;
  if (cell) speak(`${cell.id}: ${cell.verdict}`);
  return undefined;
}

function top(cell) {
  return h(
    "header",
    null,
    cell ? heading(cell) : h("h2", null, "Unknown"),
    h(
      "div",
      { class: "buttons" },
      cell && copied("copy link", () => `${location.href.split("#")[0]}#${cell.id}`),
      h(
        "button",
        {
          class: "plain close",
          "aria-label": "Close",
          title: "Close (Esc)",
          onclick: () => change({ cell: null }),
        },
        "×",
      ),
    ),
  );
}

function heading(cell) {
  return h(
    "div",
    { class: "heading" },
    h("p", { class: "verdict" }, sign(cell.sign), cell.verdict),
    h("h2", { tabindex: "-1" }, breakable(cell.id)),
  );
}

function story(cell) {
  const told = detail(cell);
  return [
    told.notes.map((note) => h("p", { class: "quiet" }, note)),
    inDifferences() && changed(cell),
    failure(told, cell),
    gate(told),
    requests(told),
    groups(told),
    blocks(told, false),
    history(cell),
    time(told, cell),
    blocks(told, true),
    alone(cell),
  ]
    .flat()
    .filter((part) => part);
}
