// Paper: plots are drawn again as wide as a page, in its colours, and as they were afterwards.
const PAPER = { width: 680, height: 860 }; // px, of A4 and Letter with margins

const onPaper = () => document.documentElement.classList.contains("paper");

function fitPaper(layout) {
  if (!onPaper()) return layout;
  return Object.assign(layout, { width: PAPER.width, height: Math.min(layout.height || Infinity, PAPER.height), autosize: false });
}

function paper(redraw) {
  const turn = (on) => {
    if (on === onPaper()) return;
    document.documentElement.classList.toggle("paper", on);
    redraw();
  };
  addEventListener("beforeprint", () => turn(true));
  addEventListener("afterprint", () => turn(false));
  const media = matchMedia("print");
  media.addEventListener("change", () => turn(media.matches));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}
