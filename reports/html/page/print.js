// @ts-check
// Sizes of figures: the width of their container, or of paper while the page is printed.

export const PAPER = { width: 680, height: 760 }; // px: A4 and Letter, without margins

const RESIZED_MS = 150; // after the last change of the window size

export const onPaper = () => document.documentElement.classList.contains("paper");

// Sets the width of a figure, which Plotly would otherwise keep.
/** @param {Layout} layout @param {HTMLElement} place */
export function fitted(layout, place) {
  if (!onPaper()) return Object.assign(layout, { width: place.clientWidth });
  return Object.assign(layout, { width: PAPER.width, height: Math.min(layout.height || Infinity, PAPER.height) });
}

// Draws a figure. Plotly positions the legend by the margins of the previous drawing. If they changed, it must draw again at
// once, because a browser that prints does not wait.
/** @param {Plot} place @param {object[]} traces @param {Layout} layout @param {object} config */
export function drawn(place, traces, layout, config) {
  const size = () => JSON.stringify(place._fullLayout?._size), before = size();
  const done = Plotly.react(place, traces, layout, config);
  return before && before !== size() ? Plotly.redraw(place) : done;
}

// Scales down tables that are wider than paper.
function fitTables() {
  for (const table of document.querySelectorAll("table")) {
    table.style.zoom = "";
    if (onPaper() && table.scrollWidth > PAPER.width) table.style.zoom = String(PAPER.width / table.scrollWidth);
  }
}

/** @type {(() => unknown)[]} */
const redraws = [];

// Each part of a page that draws figures gives its function.
/** @param {() => unknown} redraw */
export function paper(redraw) {
  redraws.push(redraw);
  if (redraws.length > 1) return;
  const redrawAll = () => redraws.forEach((each) => each());
  /** @param {boolean} on */
  const turn = (on) => {
    if (on === onPaper()) return;
    document.documentElement.classList.toggle("paper", on);
    fitTables();
    redrawAll();
  };
  addEventListener("beforeprint", () => turn(true));
  addEventListener("afterprint", () => turn(false));
  const media = matchMedia("print");
  media.addEventListener("change", () => turn(media.matches));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
  let width = innerWidth, timer = 0;
  addEventListener("resize", () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (onPaper() || width === innerWidth) return; // only the height changes if an address bar hides
      width = innerWidth;
      redrawAll();
    }, RESIZED_MS);
  });
}
