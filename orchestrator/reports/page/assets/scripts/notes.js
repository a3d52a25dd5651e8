// Below the sentence: what holds for the run as a whole.

import { run } from "./data.js";
import { h, put } from "./dom.js";

export function draw(place) {
  put(
    place,
    list("predicted ≠ observed", run.disagreements, true),
    list(
      "what else the gate weighed",
      run.weighed,
      run.weighed.some((line) => line.startsWith("blocks")),
    ),
    run.note && note(run.note),
  );
}

function list(title, lines, open) {
  if (!lines.length) return null;
  const item = (line) => h("li", null, line);
  const summary = h("summary", null, `${title}: ${lines.length}`);
  return h(
    "details",
    { class: open ? "note bad" : "note", open },
    summary,
    h("ul", null, lines.map(item)),
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
