// A button that copies text, also where the browser keeps its clipboard to itself.

import { h } from "./dom.js";
import { speak } from "./speak.js";

export function copied(title, text) {
  const button = h("button", { class: "plain copy", onclick: () => copy(button, text()) }, title);
  return button;
}

async function copy(button, text) {
  const title = button.textContent;
  button.textContent = (await written(text)) ? "copied" : "select it by hand";
  speak(button.textContent);
  setTimeout(() => (button.textContent = title), 1500);
}

async function written(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return selected(text);
  }
}

function selected(text) {
  const area = h("textarea", { class: "spoken", "aria-hidden": "true" });
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}
