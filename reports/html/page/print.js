// The width of figures: that of their place, which a window changes, or of the paper, in its colours, and as it was afterwards.
const PAPER = { width: 680, height: 760 }; // px: of A4 and of Letter, with margins

const RESIZED_MS = 150; // after the last change of a window's size

const onPaper = () => document.documentElement.classList.contains("paper");

// The width of a figure is that of its place, or of the paper: one that was given stays unless it is given anew.
function fitted(layout, place) {
  if (!onPaper()) return Object.assign(layout, { width: place.clientWidth });
  return Object.assign(layout, { width: PAPER.width, height: Math.min(layout.height || Infinity, PAPER.height) });
}

// Draws a figure. Plotly places a legend by the margins of the drawing before: where they changed, it draws once more,
// at once, since a browser that prints waits for nothing.
function drawn(place, traces, layout, config) {
  const size = () => JSON.stringify(place._fullLayout?._size), before = size();
  const done = Plotly.react(place, traces, layout, config);
  return before && before !== size() ? Plotly.redraw(place) : done;
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
  let width = innerWidth, timer;
  addEventListener("resize", () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (onPaper() || width === innerWidth) return; // an address bar that hides changes the height only
      width = innerWidth;
      redraw();
    }, RESIZED_MS);
  });
}
