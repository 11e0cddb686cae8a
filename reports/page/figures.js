// A page whose figures are whole: they are only drawn here, in the page's colours.

function inColors(layout) {
  const made = structuredClone(layout), own = colors();
  made.font = { ...made.font, color: own.ink };
  made.modebar = modebar(own);
  made.hoverlabel = { bgcolor: own.paper, bordercolor: own.line, font: { color: own.ink } };
  for (const name of Object.keys(made).filter((key) => /^[xy]axis\d*$/.test(key))) Object.assign(made[name], { gridcolor: own.line, linecolor: own.line, tickcolor: own.line });
  return made;
}

async function draw() {
  for (const [place, figure] of Object.entries(data.figures)) {
    await Plotly.react($(place), structuredClone(figure.data), inColors(figure.layout), {
      displaylogo: false, showSendToCloud: false, responsive: true, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"], ...figure.config,
    });
  }
}

async function start() {
  await loadPlotly();
  await draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  document.body.dataset.ready = "yes";
}

start();
