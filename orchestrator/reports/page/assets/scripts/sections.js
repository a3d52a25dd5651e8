// The parts of a cell's story. Each is nothing where there is nothing to tell.

import { run } from "./data.js";
import { changeOf } from "./changes.js";
import { h } from "./dom.js";
import { among, phases } from "./plots.js";
import { breakable, count, differing, seconds } from "./words.js";
import { copied } from "./clipboard.js";

const LONG = new Set(["backends not taken"]);

export function section(title, ...content) {
  const present = content.flat().filter((part) => part);
  return present.length ? h("section", null, h("h3", null, title), present) : null;
}

export function failure({ failure, log, log_lines }, cell) {
  if (!failure) return cell.why ? section("why", h("p", { class: "cause" }, cell.why)) : null;
  const where = failure.phase ? ` in ${failure.phase}` : "";
  return section(
    "failure",
    h("p", { class: "kind" }, h("b", null, failure.category), `${where}, owner ${failure.owner}`),
    h("blockquote", { class: "cause" }, failure.cause),
    cell.why && cell.why !== failure.cause && h("p", null, cell.why),
    h("p", { class: "next" }, h("b", null, "next: "), failure.next),
    failure.excerpt.length > 0 && h("pre", { tabindex: "0" }, failure.excerpt.join("\n")),
    log_lines.length > 0 &&
      h(
        "details",
        null,
        h("summary", null, `log: the last ${log_lines.length} lines`),
        h("pre", { tabindex: "0" }, log_lines.join("\n")),
        h("p", { class: "quiet" }, breakable(log)),
      ),
  );
}

export function requests({ requests }) {
  if (!requests.length) return null;
  const rows = requests.map(([field, asked, got, verdict]) =>
    h(
      "tr",
      { class: asked === null ? "unasked" : null },
      h("th", { scope: "row" }, breakable(field)),
      h("td", null, breakable(asked ?? "–")),
      h("td", null, breakable(got ?? "–")),
      h("td", null, h("i", { class: `became ${verdict}` }, verdict)),
    ),
  );
  return section("asked and got", table(["", "asked", "got", "verdict"], rows));
}

export function groups({ groups }) {
  if (!groups.length) return null;
  return section(
    "target and draft",
    groups.map((group) =>
      h(
        "div",
        { class: "group" },
        h(
          "p",
          null,
          h("i", { class: "owner" }, `${group.owner} `),
          h("b", null, breakable(group.backend)),
          ` · ${count(group.layers, "layer")}`,
        ),
        h(
          "dl",
          null,
          Object.entries(group.facts).map(([name, value]) =>
            h("div", null, h("dt", null, name), h("dd", null, value)),
          ),
        ),
        group.of !== group.backend && h("p", { class: "quiet class" }, breakable(group.of)),
      ),
    ),
  );
}

export function time(told, cell) {
  if (cell.seconds === null) return null;
  return section(
    `time · ${seconds(cell.seconds)}${told.attempts > 1 ? `, attempt ${told.attempts}` : ""}`,
    phases(told.phases, told.failure?.phase),
    among(cell),
  );
}

const LAST = new Set(["build", "placement", "not real"]);

// How it came to what it got, or with `last`, where all of it ran.
export function blocks({ blocks }, last) {
  return Object.entries(blocks)
    .filter(([title]) => LAST.has(title) === last)
    .map(([title, lines]) => block(title, lines, !last && !LONG.has(title)));
}

function block(title, lines, open) {
  const item = (line) => h("li", { class: line.startsWith("  ") ? "deep" : null }, line.trim());
  return h(
    "details",
    { class: "block", open },
    h("summary", null, title),
    h("ul", null, lines.map(item)),
  );
}

export function alone(cell) {
  const [command, ...hints] = run.command;
  const text = command.replace(run.place, () => cell.id);
  return section(
    "run it alone",
    h("pre", { class: "command", tabindex: "0" }, text),
    hints.map((hint) => h("p", { class: "quiet" }, hint)),
    copied("copy command", () => text),
  );
}

export function changed(cell) {
  const { kind, lines } = changeOf(cell);
  const item = (line) => h("li", null, differing(line));
  return section(kind, lines.length > 0 && h("ul", { class: "differs" }, lines.map(item)));
}

export function gate({ gate }) {
  const item = (line) => h("li", null, line);
  return section("gate", gate.length > 0 && h("ul", { class: "differs" }, gate.map(item)));
}

function table(titles, rows) {
  return h(
    "div",
    { class: "scroll" },
    h(
      "table",
      { class: "facts" },
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          titles.map((title) => h("th", { scope: "col" }, title)),
        ),
      ),
      h("tbody", null, rows),
    ),
  );
}
