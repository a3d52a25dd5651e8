// A table that is wider than the paper is printed smaller, down to what can be read.

const PAPER_PX = 1030;
const LEAST = 0.4;

export function shrinkOnPaper() {
  addEventListener("beforeprint", () => {
    const table = document.querySelector("table.matrix");
    const zoom = PAPER_PX / (table?.offsetWidth ?? PAPER_PX);
    table?.style.setProperty("--print-zoom", Math.max(LEAST, Math.min(1, zoom)));
  });
}
