// Puts the page together, and draws again what a change touches.

import { draw as drawAlike } from "./alike.js";
import { draw as drawBar, drawChosen, box } from "./bar.js";
import { draw as drawCompared } from "./compared.js";
import { byId, cells } from "./data.js";
import { h, put } from "./dom.js";
import { inView, sift } from "./facets.js";
import { button as keysButton } from "./keys.js";
import { draw as drawList } from "./list.js";
import { draw as drawMatrix } from "./matrix.js";
import { draw as drawMenus } from "./menus.js";
import { draw as drawNotes } from "./notes.js";
import { draw as drawPanel } from "./panel.js";
import { shrinkOnPaper } from "./paper.js";
import { name } from "./place.js";
import { draw as drawProof } from "./proof.js";
import { speak } from "./speak.js";
import { change, onChange, read, state } from "./state.js";
import { draw as drawTallies } from "./tallies.js";
import { button as themeButton } from "./theme.js";
import { anchor, focusOn } from "./walk.js";
import { count } from "./words.js";

const at = (id) => document.getElementById(id);
const places = Object.fromEntries(
  ["counts", "menus", "bar", "chosen", "compared"].map((name) => [name, h("div", { class: name })]),
);

function begin() {
  read();
  at("run").append(h("span", { class: "buttons" }, keysButton(), themeButton()));
  drawNotes(at("notes"));
  drawProof(at("proof"));
  put(
    at("tools"),
    places.counts,
    h("div", { class: "finding" }, box, places.menus),
    places.bar,
    places.chosen,
    places.compared,
  );
  draw();
  drawPanel();
  if (byId.has(state.cell)) focusOn(byId.get(state.cell).number);
  noteThatItIsPainted();
}

onChange((changed) => {
  const redraw = changed.length !== 1 || changed[0] !== "cell";
  if (redraw) keepingFocus(draw);
  else select();
  if (changed.includes("cell") || changed.includes("view")) drawPanel();
  noteThatItIsPainted();
});

function draw() {
  const sifted = sift();
  drawTallies(places.counts, sifted);
  drawMenus(places.menus, sifted);
  if (state.view === "list") drawList(at("matrix"), sifted.fitting);
  else drawMatrix(at("matrix"), sifted.fitting);
  anchor();
  drawBar(places.bar);
  drawChosen(places.chosen);
  drawCompared(places.compared);
  drawAlike(at("alike"), sifted.fitting);
  speak(`${sifted.fitting.size} of ${count(inView().length, "cell")}`);
}

// For those who measure: the first task after the frame in which all of it is to be seen.
function noteThatItIsPainted() {
  requestAnimationFrame(() => setTimeout(() => performance.mark("drawn")));
}

function select() {
  document.querySelector('[aria-selected="true"]')?.removeAttribute("aria-selected");
  const number = byId.get(state.cell)?.number;
  document.querySelector(`#matrix [data-cell="${number}"]`)?.setAttribute("aria-selected", "true");
}

// What is drawn anew has the same key as before.
function keepingFocus(work) {
  const { key, cell, fold } = document.activeElement?.dataset ?? {};
  work();
  const [name, value] =
    [
      ["key", key],
      ["cell", cell],
      ["fold", fold],
    ].find(([, value]) => value) ?? [];
  if (name)
    document.querySelector(`[data-${name}="${CSS.escape(value)}"]`)?.focus({ preventScroll: true });
}

addEventListener("mouseover", ({ target }) => {
  if (target.matches("td.cell")) name(target, cells[target.dataset.cell]);
});

addEventListener("click", (event) => {
  const found = event.target.closest("[data-cell]");
  if (!found || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  change({ cell: cells[found.dataset.cell].id });
  if (found.matches("td")) focusOn(Number(found.dataset.cell));
});

shrinkOnPaper();
begin();
