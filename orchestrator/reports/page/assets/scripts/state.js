// What is looked at, kept in the address behind `#`: a link to it shows the same.

const PLAIN = { view: "matrix", across: "", show: "", from: "", to: "", q: "", sort: "" };

export const state = { cell: null, ...PLAIN, filters: new Map() };

const listeners = [];

export function onChange(listener) {
  listeners.push(listener);
}

export function change(parts) {
  // So that the way back leads from a cell to the table.
  const opens = state.cell === null && Boolean(parts.cell);
  Object.assign(state, parts);
  write(opens ? "pushState" : "replaceState");
  listeners.forEach((listener) => listener(Object.keys(parts)));
}

export function toggle(facet, value) {
  const filters = new Map(state.filters);
  const values = new Set(filters.get(facet));
  if (!values.delete(value)) values.add(value);
  if (values.size) filters.set(facet, values);
  else filters.delete(facet);
  change({ filters });
}

export function only(facet, values) {
  const filters = new Map(state.filters);
  if (values.length) filters.set(facet, new Set(values));
  else filters.delete(facet);
  change({ filters });
}

export function linkTo(id) {
  return address({ ...state, cell: id });
}

export function read() {
  const [id, words] = location.hash.slice(1).split("?", 2);
  const parameters = new URLSearchParams(words ?? "");
  const filters = new Map();
  const parts = { ...PLAIN };
  for (const [key, value] of parameters) {
    if (key in PLAIN) parts[key] = value;
    else filters.set(key, (filters.get(key) ?? new Set()).add(value));
  }
  Object.assign(state, parts, { filters, cell: decoded(id) || null });
}

addEventListener("hashchange", () => {
  if (location.hash === address(state)) return;
  read();
  listeners.forEach((listener) => listener(Object.keys(state)));
});

function write(how) {
  const wanted = address(state);
  if (location.hash !== wanted) history[how](null, "", wanted || "#");
}

function address({ cell, filters, ...parts }) {
  const parameters = new URLSearchParams();
  for (const key of Object.keys(PLAIN))
    if (parts[key] !== PLAIN[key]) parameters.append(key, parts[key]);
  for (const [facet, values] of filters)
    for (const value of values) parameters.append(facet, value);
  const words = parameters.toString();
  return cell || words ? `#${cell ?? ""}${words ? `?${words}` : ""}` : "";
}

function decoded(id) {
  try {
    return decodeURIComponent(id);
  } catch {
    return id;
  }
}
