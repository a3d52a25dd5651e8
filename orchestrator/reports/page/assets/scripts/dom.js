// Elements from names, attributes and text: nothing that goes through here can become markup.

const SVG = "http://www.w3.org/2000/svg";

export function h(name, attributes, ...children) {
  return filled(document.createElement(name), attributes, children);
}

export function svg(name, attributes, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

export function put(place, ...children) {
  place.replaceChildren(...children.flat().filter(present));
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter(present));
  return element;
}

function present(child) {
  return child !== null && child !== undefined && child !== false && child !== "";
}
