// Light, dark, or as the system has it.

import { h } from "./dom.js";

const THEMES = ["system", "light", "dark"];
const KEY = "vllm-matrix-theme";

export function button() {
  const element = h("button", { class: "plain", onclick: next }, "");
  const show = () => {
    element.textContent = `theme: ${current()}`;
    document.documentElement.dataset.theme = current();
  };
  function next() {
    keep(THEMES[(THEMES.indexOf(current()) + 1) % THEMES.length]);
    show();
  }
  show();
  return element;
}

let chosen = null;

function current() {
  return chosen ?? kept() ?? "system";
}

function keep(theme) {
  chosen = theme;
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // Then it holds as long as the page is open.
  }
}

function kept() {
  try {
    const theme = localStorage.getItem(KEY);
    return THEMES.includes(theme) ? theme : null;
  } catch {
    return null;
  }
}
