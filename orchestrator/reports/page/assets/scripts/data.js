// What the run holds. Values that come often were packed once, and are opened when asked for.

export const run = JSON.parse(await inflated(document.getElementById("data").textContent));

const opened = [];

export const cells = run.cells.map((ref, number) => Object.assign(open(ref), { number }));
export const byId = new Map(cells.map((cell) => [cell.id, cell]));

export function detail(cell) {
  return open(run.details[cell.number]);
}

export function differences() {
  return run.differences.map(open);
}

export function open(ref) {
  return (opened[ref] ??= unpacked(run.values[ref]));
}

function unpacked(value) {
  if (!Array.isArray(value)) return value;
  if (!(value[0] < 0)) return value.map(open);
  const keys = run.shapes[-value[0] - 1];
  return Object.fromEntries(keys.map((key, n) => [key, open(value[n + 1])]));
}

async function inflated(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(plain).text();
}
