// The table: groups of rows that fold, columns under their heads, a cell for each place.

import { run } from "./data.js";
import { h, put } from "./dom.js";
import { inDifferences, inView } from "./facets.js";
import { foldButton, isFolded } from "./folds.js";
import { LAYOUTS, layoutName, pivot } from "./pivot.js";
import { place } from "./place.js";
import { sign, signOf, stands } from "./signs.js";
import { state } from "./state.js";
import { breakable } from "./words.js";

const WORDS_PX = 150;

let drawn = null;

// The cells that are shown, also in folded groups.
export function inOrder() {
  const rows = drawn?.groups.flatMap((group) => group.rows) ?? [];
  return rows
    .flatMap((row) => drawn.columns.map((column) => row.cells.get(column.key)))
    .filter(Boolean);
}

export function draw(room, fitting) {
  if (!fitting.size) {
    drawn = null;
    put(room, h("p", { class: "none" }, "No cell fits. Take a filter away, or all with Esc."));
    return;
  }
  const layout = LAYOUTS.get(layoutName());
  const all = whole(layout);
  const shown = fitting.size === inView().length ? all : pivot(fitting, layout);
  const words = manner(shown) === "words";
  drawn = shown;
  const view = { shown, all, fitting, words };
  const kind = `${words ? "words" : "signs"}${inDifferences() ? " differences" : ""}`;
  const columns = shown.columns.length;
  const table = h(
    "table",
    { class: `matrix ${kind}`, role: "grid", "aria-label": "Cells" },
    h("colgroup", null, h("col", { class: "rows" }), h("col", { span: columns })),
    head(shown, layout),
    shown.groups.map((group) => body(group, view)),
  );
  table.style.setProperty("--columns", columns);
  scroller(room).replaceChildren(table);
}

const wholes = new Map();

// Of all cells in the view, which many drawings have in common.
function whole(layout) {
  const key = [state.view, state.from, state.to, layoutName()].join("\n");
  if (!wholes.has(key)) wholes.set(key, pivot(inView(), layout));
  return wholes.get(key);
}

// The same one each time, so that it stays where it was scrolled to.
function scroller(room) {
  const there = room.querySelector(":scope > .scroll");
  if (there) return there;
  const made = h("div", { class: "scroll" });
  put(room, made);
  return made;
}

function manner(shown) {
  if (state.show) return state.show;
  return shown.columns.length * WORDS_PX <= innerWidth * 2 ? "words" : "signs";
}

function head(shown, layout) {
  const heads = [...Map.groupBy(shown.columns, (column) => column.head)];
  const two = layout.head && new Set(inView().map((cell) => cell[layout.column])).size > 1;
  const axes = [layout.group, ...layout.row].join(" / ");
  const corner = h("th", { class: "corner", rowspan: two ? 2 : 1, scope: "col" }, axes);
  const upper = heads.map(([name, columns]) => title(name, true, columns.length));
  const lower = shown.columns.map((column, n) => title(column.label, isFirst(shown.columns, n), 1));
  const rows = two ? [[corner, upper], [lower]] : [[corner, layout.head ? upper : lower]];
  return h(
    "thead",
    null,
    rows.map((row) => h("tr", null, ...row)),
  );
}

function title(name, first, span) {
  const attributes = {
    class: first ? "first" : null,
    colspan: span > 1 ? span : null,
    scope: span > 1 ? "colgroup" : "col",
    title: run.builds[name] || null,
  };
  return h("th", attributes, h("span", null, breakable(name)));
}

function body(group, view) {
  const { columns } = view.shown;
  const folded = isFolded(group, view);
  const sums = folded
    ? columns.map((column, n) => sum(group, column, isFirst(columns, n)))
    : h("td", { colspan: columns.length });
  return h(
    "tbody",
    null,
    h(
      "tr",
      { class: "group" },
      h("th", { scope: "rowgroup" }, foldButton(group.name, folded)),
      sums,
    ),
    folded ? null : group.rows.map((row) => line(row, view)),
  );
}

// Of a folded group: what stands out with its number, or else how many there are.
function sum(group, column, first) {
  const its = group.rows.map((row) => row.cells.get(column.key)).filter((cell) => cell);
  const kinds = [...Map.groupBy(its, signOf)];
  const noted = kinds.filter(([, [cell]]) => stands(cell));
  const told = noted.length ? noted : kinds.slice(0, 1).map(([kind]) => [kind, its]);
  return h(
    "td",
    { class: first ? "first sum" : "sum", "data-unfold": group.name },
    told.map(([kind, alike]) => h("span", null, sign(kind), String(alike.length))),
  );
}

function line(row, view) {
  const { columns } = view.shown;
  const { cells } = view.all.row(row);
  return h(
    "tr",
    null,
    h("th", { scope: "row" }, breakable(row.label)),
    columns.map((column, n) => place(cells.get(column.key), isFirst(columns, n), view)),
  );
}

function isFirst(columns, n) {
  return n === 0 || columns[n].head !== columns[n - 1].head;
}
