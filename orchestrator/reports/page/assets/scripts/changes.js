// The differences of two builds, or from a baseline, as the judge told them: only looked up here.

import { cells, differences, run } from "./data.js";
import { state } from "./state.js";

export const pairs = differences();
export const UNCHANGED = "unchanged";

const tables = new Map();

export function pair() {
  const exact = pairs.find((each) => each.before === state.from && each.after === state.to);
  return exact ?? usual();
}

// What the gate or a proof compares; otherwise the oldest build and the newest.
function usual() {
  const arms = Object.entries(run.proof?.arms ?? {});
  const named = (part) => arms.find(([, arm]) => arm === part)?.[0];
  const baseline = pairs.find((each) => each.build === null);
  const proven = pairs.find(
    (each) => each.before === named("before") && each.after === named("after"),
  );
  const first = pairs[0]?.before;
  return baseline ?? proven ?? pairs.filter((each) => each.before === first).at(-1);
}

export function changeOf(cell) {
  return table().get(cell.id) ?? { kind: UNCHANGED, lines: [] };
}

export function compared() {
  const build = pair()?.build;
  return build === null ? cells : cells.filter((cell) => cell.build === build);
}

function table() {
  const chosen = pair();
  if (!chosen) return new Map();
  if (!tables.has(chosen)) {
    tables.set(chosen, new Map(chosen.changed.map((change) => [change.cell, change])));
  }
  return tables.get(chosen);
}
