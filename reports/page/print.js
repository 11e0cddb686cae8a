// Paper: plots are drawn again as wide as a page, in its colours, and as they were afterwards.
const PAPER = { width: 680, height: 760 }; // px: of A4 and of Letter, with margins

const onPaper = () => document.documentElement.classList.contains("paper");

// The width of a figure is that of its place, or of the paper: one that was given stays unless it is given anew.
function fitted(layout, place) {
  if (!onPaper()) return Object.assign(layout, { width: place.clientWidth });
  return Object.assign(layout, { width: PAPER.width, height: Math.min(layout.height || Infinity, PAPER.height) });
}

// Tables that are wider than the paper are drawn smaller.
function fitTables() {
  for (const table of document.querySelectorAll("table")) {
    table.style.zoom = "";
    if (onPaper() && table.scrollWidth > PAPER.width) table.style.zoom = PAPER.width / table.scrollWidth;
  }
}

function paper(redraw) {
  const turn = (on) => {
    if (on === onPaper()) return;
    document.documentElement.classList.toggle("paper", on);
    fitTables();
    redraw();
  };
  addEventListener("beforeprint", () => turn(true));
  addEventListener("afterprint", () => turn(false));
  const media = matchMedia("print");
  media.addEventListener("change", () => turn(media.matches));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}
