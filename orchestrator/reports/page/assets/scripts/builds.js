// The history of a cell: the same question to every build of the run.

import { cells, run } from "./data.js";
import { h } from "./dom.js";
import { section } from "./sections.js";
import { sign } from "./signs.js";
import { linkTo } from "./state.js";
import { got } from "./words.js";

export function history(cell) {
  const same = cells.filter(
    (each) => each.card === cell.card && each.model === cell.model && each.backend === cell.backend,
  );
  if (same.length < 2) return null;
  return section(
    "across builds",
    h(
      "ol",
      { class: "builds" },
      same.map((each) => step(each, cell)),
    ),
  );
}

function step(each, cell) {
  const told = [each.target, each.draft].filter((text) => text !== "-");
  return h(
    "li",
    { class: each === cell ? "here" : null },
    sign(each.sign),
    h(
      "a",
      {
        href: linkTo(each.id),
        "data-cell": each.number,
        "aria-current": each === cell ? "true" : null,
      },
      each.build,
    ),
    h("small", null, run.builds[each.build]),
    h(
      "p",
      null,
      told.flatMap((text, n) => [n ? " · draft " : "", ...got(text)]),
      told.length ? " " : "",
      each.category && h("span", { class: "kind" }, each.category),
    ),
  );
}
