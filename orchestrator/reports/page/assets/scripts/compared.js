// What the comparison comes to, in one sentence, and what only the earlier side had.

import { pair } from "./changes.js";
import { h, put } from "./dom.js";
import { inDifferences } from "./facets.js";

export function draw(place) {
  if (!inDifferences()) {
    put(place);
    return;
  }
  const { sentence, gone } = pair();
  const item = (id) => h("li", null, id);
  put(
    place,
    h("p", null, sentence),
    gone.length > 0 &&
      h(
        "details",
        { class: "note" },
        h("summary", null, `gone: ${gone.length}`),
        h("ul", null, gone.map(item)),
      ),
  );
}
