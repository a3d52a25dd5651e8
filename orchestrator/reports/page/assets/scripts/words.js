// How the words of the reports are set: the same words, some of them quieter.

import { h } from "./dom.js";

const BECAME = new Set([
  ...["honoured", "dropped", "refused", "inherited", "autoselected", "unseen"],
]);

// `TRITON_ATTN → CPU_ATTN dropped, MoE TRITON`
export function got(text) {
  return text.split(", ").flatMap((part, n) => [n ? ", " : "", ...became(part)]);
}

export function became(text) {
  const space = text.lastIndexOf(" ");
  const word = text.slice(space + 1);
  if (!BECAME.has(word)) return breakable(text);
  return [...breakable(text.slice(0, space + 1)), h("i", { class: `became ${word}` }, word)];
}

// `draft attention: FLASH_ATTN → TRITON_ATTN`
export function differing(line) {
  const colon = line.indexOf(": ");
  const sides = line.slice(colon + 2).split(" → ");
  return [
    h("i", { class: "owner" }, ...breakable(line.slice(0, colon + 2))),
    ...sides.flatMap((side, n) => [n ? " → " : "", ...became(side)]),
  ];
}

// Long names may break behind an underscore, a slash or a dot.
export function breakable(text) {
  const parts = text.split(/(?<=[_/.])(?=\w)/);
  return parts.flatMap((part, n) => (n ? [h("wbr"), part] : [part]));
}

export function count(number, one, many = `${one}s`) {
  return `${number} ${number === 1 ? one : many}`;
}

export function seconds(s) {
  if (s === null) return "";
  return s < 0.095 ? `${Math.round(s * 1000)} ms` : `${s < 9.95 ? s.toFixed(1) : Math.round(s)} s`;
}
