// Below the sentence: what holds for the run as a whole.

import { run } from "./data.js";
import { h, put } from "./dom.js";

export function draw(place) {
  put(
    place,
    run.disagreements.length > 0 &&
      h(
        "details",
        { class: "note bad", open: true },
        h("summary", null, `predicted ≠ observed: ${run.disagreements.length}`),
        h(
          "ul",
          null,
          run.disagreements.map((line) => h("li", null, line)),
        ),
      ),
    run.note && note(run.note),
  );
}

// The first clause says it; the rest is for who wants to know.
function note(text) {
  const end = text.indexOf(":");
  if (end < 0) return h("p", { class: "note" }, text);
  return h(
    "details",
    { class: "note" },
    h("summary", null, text.slice(0, end)),
    h("p", null, text.slice(end + 1).trim()),
  );
}
