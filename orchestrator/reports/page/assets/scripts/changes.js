// The differences of two builds, as the judge told them: the page only looks them up.

import { byId, cells, differences, run } from "./data.js";
import { state } from "./state.js";

export const pairs = differences();
export const UNCHANGED = "unchanged";

const tables = new Map();

export function pair() {
  const exact = pairs.find((each) => each.before === state.from && each.after === state.to);
  return exact ?? usual();
}

// A proof compares these; otherwise the oldest build and the newest.
function usual() {
  const arms = Object.entries(run.proof?.arms ?? {});
  const named = (part) => arms.find(([, arm]) => arm === part)?.[0];
  const proven = pairs.find(
    (each) => each.before === named("before") && each.after === named("after"),
  );
  const first = pairs[0]?.before;
  return proven ?? pairs.filter((each) => each.before === first).at(-1);
}

export function changeOf(cell) {
  const found = table().get(cell.id);
  return found ?? { cell: cell.id, kind: UNCHANGED, reason: "", differs: "", base: null };
}

export function baseOf(cell) {
  const before = pair()?.before;
  const same = changeOf(cell).base;
  if (same) return byId.get(same);
  return cells.find(
    (each) =>
      each.build === before &&
      each.card === cell.card &&
      each.model === cell.model &&
      each.backend === cell.backend,
  );
}

export function compared() {
  const after = pair()?.after;
  return cells.filter((cell) => cell.build === after);
}

function table() {
  const chosen = pair();
  if (!chosen) return new Map();
  if (!tables.has(chosen)) {
    tables.set(chosen, new Map(chosen.changed.map((change) => [change.cell, change])));
  }
  return tables.get(chosen);
}
