// From one cell that did not simply pass to the next, in the order of what is shown.

import { byId } from "./data.js";
import { inOrder as listed } from "./list.js";
import { inOrder as tabled } from "./matrix.js";
import { stands } from "./signs.js";
import { change, state } from "./state.js";
import { focusOn } from "./walk.js";

export function step(by) {
  const wanted = (state.view === "list" ? listed() : tabled()).filter(stands);
  if (!wanted.length) return false;
  const here = wanted.indexOf(byId.get(state.cell));
  const next = here < 0 && by < 0 ? wanted.at(-1) : wanted.at((here + by) % wanted.length);
  change({ cell: next.id });
  focusOn(next.number);
  return true;
}
