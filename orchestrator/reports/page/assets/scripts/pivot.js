// Cells as rows and columns: which axes go down, and which go across.

import { cells, run } from "./data.js";
import { inView } from "./facets.js";
import { state } from "./state.js";

export const LAYOUTS = new Map([
  ["cards", { group: "model", row: ["backend"], head: "card", column: "build" }],
  ["models", { group: "card", row: ["backend"], head: "model", column: "build" }],
  ["backends", { group: "card", row: ["model"], head: "backend", column: "build" }],
  ["builds", { group: "card", row: ["model", "backend"], head: "", column: "build" }],
]);

// On a phone two or three builds side by side are more than any number of cards.
export function layoutName() {
  if (LAYOUTS.has(state.across)) return state.across;
  const narrow = innerWidth < 700 && Object.keys(run.builds).length < 4;
  return narrow || new Set(inView().map((cell) => cell.card)).size === 1 ? "builds" : "cards";
}

export function pivot(shown, layout) {
  const columns = new Map();
  const groups = new Map();
  for (const cell of inOrder(shown, layout)) {
    const head = cell[layout.head] ?? "";
    const column = key(head, cell[layout.column]);
    const group = cell[layout.group];
    const label = layout.row.map((axis) => cell[axis]).join(" / ");
    if (!columns.has(column))
      columns.set(column, { key: column, head, label: cell[layout.column] });
    if (!groups.has(group)) groups.set(group, new Map());
    const rows = groups.get(group);
    if (!rows.has(label)) rows.set(label, { group, label, cells: new Map() });
    rows.get(label).cells.set(column, cell);
  }
  const order = ordering([layout.head, layout.column]);
  return {
    columns: [...columns.values()].sort((one, other) =>
      order(named(layout, one), named(layout, other)),
    ),
    groups: [...groups].map(([name, rows]) => ({ name, rows: [...rows.values()] })),
    row: ({ group, label }) => groups.get(group).get(label),
  };
}

function named(layout, column) {
  return { [layout.head]: column.head, [layout.column]: column.label };
}

function inOrder(shown, layout) {
  return [...shown].sort(ordering([layout.group, ...layout.row]));
}

// As the run has them, however few are shown.
function ordering(axes) {
  const places = axes.filter((axis) => axis).map((axis) => [axis, order(axis)]);
  return (one, other) => {
    for (const [axis, place] of places) {
      const step = place.get(one[axis]) - place.get(other[axis]);
      if (step) return step;
    }
    return 0;
  };
}

const orders = new Map();

function order(axis) {
  if (!orders.has(axis)) {
    const values = [...new Set(cells.map((cell) => cell[axis]))];
    orders.set(axis, new Map(values.map((value, place) => [value, place])));
  }
  return orders.get(axis);
}

function key(...parts) {
  return parts.join("\n");
}
