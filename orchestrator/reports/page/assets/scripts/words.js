// How the words of the reports are set: the same words, some of them quieter.

import { h } from "./dom.js";

const FITTING = 16;

const BECAME = new Set([
  ...["honoured", "dropped", "refused", "inherited", "autoselected", "unseen"],
]);

// `TRITON_ATTN → CPU_ATTN dropped, MoE TRITON`
export function got(text) {
  return text.split(", ").flatMap((part, n) => [n ? ", " : "", ...became(part)]);
}

export function became(text) {
  const [, head, word, tail] = /^(.*? ?)(\S+)( \(.*\))?$/s.exec(text) ?? [];
  if (!BECAME.has(word)) return breakable(text);
  const kind = tail && h("i", { class: "owner" }, tail);
  return [...breakable(head), h("i", { class: `became ${word}` }, word), kind];
}

// `draft attention: FLASH_ATTN → TRITON_ATTN`
export function differing(line) {
  if (!line.includes(" → ")) return breakable(line);
  const [, name, rest] = /^(.*?: )?(.*)$/s.exec(line);
  const sides = rest.split(" → ");
  return [
    name && h("i", { class: "owner" }, ...breakable(name)),
    ...sides.flatMap((side, n) => [n ? " → " : "", ...became(side)]),
  ];
}

// Names too long for a line may break behind an underscore, a slash or a dot.
export function breakable(text) {
  return text.split(/(?<= )/).flatMap((word) => (word.length > FITTING ? broken(word) : [word]));
}

function broken(word) {
  const parts = word.split(/(?<=[_/.])(?=\w)/);
  return parts.flatMap((part, n) => (n ? [h("wbr"), part] : [part]));
}

export function count(number, one, many = `${one}s`) {
  return `${number} ${number === 1 ? one : many}`;
}

export function seconds(s) {
  if (s === null) return "";
  return s < 0.095 ? `${Math.round(s * 1000)} ms` : `${s < 9.95 ? s.toFixed(1) : Math.round(s)} s`;
}
