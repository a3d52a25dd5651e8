// Free text: which cells hold every term, anywhere in what they asked, got and failed with.

import { run } from "./data.js";

const SEARCHED = ["requests", "groups", "failure", "log_lines"];

let lowered = null;

// Whether a cell (by number) holds all terms of the text; a term after a minus must not be there.
export function finder(text) {
  const terms = text
    .toLowerCase()
    .split(/\s+/)
    .filter((term) => term && term !== "-");
  if (!terms.length) return () => true;
  const tests = terms.map((term) => {
    const unwanted = term.startsWith("-");
    const held = holders(unwanted ? term.slice(1) : term);
    return (number) => held(number) !== unwanted;
  });
  return (number) => tests.every((test) => test(number));
}

function holders(term) {
  const holds = spread(term);
  return (number) =>
    holds[run.cells[number]] === 1 || fields(number).some((ref) => holds[ref] === 1);
}

// Of every packed value, whether the term is in it. Parts are packed before what holds them.
function spread(term) {
  lowered ??= run.values.map((value) => (typeof value === "string" ? value.toLowerCase() : value));
  const holds = new Uint8Array(lowered.length);
  lowered.forEach((value, ref) => {
    if (typeof value === "string") holds[ref] = value.includes(term) ? 1 : 0;
    else if (Array.isArray(value)) holds[ref] = value.some((part) => holds[part] === 1) ? 1 : 0;
  });
  return holds;
}

function fields(number) {
  const [shape, ...refs] = run.values[run.details[number]];
  const keys = run.shapes[-shape - 1];
  return SEARCHED.map((key) => refs[keys.indexOf(key)]);
}
