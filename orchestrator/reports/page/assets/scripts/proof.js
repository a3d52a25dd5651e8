// The table of a proof: the same questions to each of its builds, side by side.

import { run } from "./data.js";
import { h, put } from "./dom.js";
import { sign } from "./signs.js";
import { breakable } from "./words.js";

const SHOWN = 5;
const SIGNS = { passed: "passed", failed: "failed", "not run": "not-run" };

export function draw(place) {
  const proof = run.proof;
  if (!proof) return;
  const arms = Object.entries(proof.arms);
  put(
    place,
    h(
      "details",
      { class: "proof", open: true },
      h("summary", null, h("strong", { class: proof.standing.replace(" ", "-") }, proof.sentence)),
      reasons(proof.reasons),
      h(
        "div",
        { class: "scroll", tabindex: "0" },
        h(
          "table",
          { class: "facts" },
          h(
            "thead",
            null,
            h(
              "tr",
              null,
              ["card", "target asked", "draft asked"].map(title),
              arms.map(([build, arm]) => title(`${arm}: ${build}`)),
            ),
          ),
          h(
            "tbody",
            null,
            proof.lines.map((line) => row(line, arms)),
          ),
        ),
      ),
      proof.lines.some((line) => !line.claimed) &&
        h("p", { class: "quiet" }, "in italics: not part of the claim"),
      regressions("regressed with the fix", proof.regressions),
      regressions("regressed with another attempt, against the fix", proof.attempts),
    ),
  );
}

function reasons(all) {
  const item = (reason) => h("li", null, reason);
  const rest = all.slice(SHOWN);
  return [
    h("ul", null, all.slice(0, SHOWN).map(item)),
    rest.length > 0 &&
      h(
        "details",
        null,
        h("summary", null, `and ${rest.length} more`),
        h("ul", null, rest.map(item)),
      ),
  ];
}

function title(text) {
  return h("th", { scope: "col" }, breakable(text));
}

function row(line, arms) {
  return h(
    "tr",
    { class: line.claimed ? null : "unclaimed" },
    line.asked.map((text) => h("td", null, breakable(text))),
    arms.map(([build]) => answer(line.answers[build])),
  );
}

function answer(given) {
  if (!given) return h("td", null, "–");
  const [verdict, text] = given;
  return h("td", { class: SIGNS[verdict] }, sign(SIGNS[verdict]), breakable(text));
}

function regressions(text, found) {
  if (!found.length) return null;
  return h(
    "details",
    null,
    h("summary", null, `${text}: ${found.length}`),
    h(
      "ul",
      null,
      found.map(([cell, why]) => h("li", null, h("a", { href: `#${cell}` }, cell), ` ${why}`)),
    ),
  );
}
