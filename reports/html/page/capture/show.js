// Evidence: Show, a pin, n or p chooses flow, range and mark of a finding at once; the mark is a pale band in all panels.
const CONTEXT = 12; // packets beside the evidence that the range includes
const MARGIN_OF_EVIDENCE = 0.3; // of its length, at least
const POINT_LEAST = 0.004; // share of the range that the mark of a single packet takes

// Returns the finding of a number of the link, if it can be shown: its times are known, and its flow if it has one.
function shownFinding(number) {
  const finding = number && data.findings[number - 1], flows = state.flows;
  const can = finding && finding.from !== null && (finding.cited_flow === null ? flows.number.length > 0 : flows.rowOf(finding.cited_flow) >= 0);
  return can ? finding : null;
}

// Returns the flow in which a finding is shown. One about the capture is shown in the flow of its packet if the page has it, else in
// the flow in view.
function flowOfFinding({ cited_flow: flow, capture, frames }) {
  if (flow !== null) return flow;
  const p = state.packets, at = p.frame.findIndex((frame, i) => frame === frames[0] && p.capture[i] === capture);
  return (at < 0 ? null : [...p.places.keys()][p.who[at] >> 1]) ?? choice.flow ?? findingOf(firstAboutFlow())?.cited_flow ?? state.flows.number[ordered()[0]];
}

// Returns a range of a flow without the time before and after the flow, or null if it is all of it. Evidence may be outside of the
// flow in view, if it is about the capture.
function withinFlow(range, flow, [from, to]) {
  const row = state.flows.rowOf(flow), begin = beginOf(flow), end = begin + state.flows.lasted[row] / 1e3, margin = (end - begin) * 0.01;
  if (from < begin - margin || to > end + margin) return range;
  const [left, right] = [Math.max(range[0], begin - margin), Math.min(range[1], end + margin)];
  return left <= begin && right >= end ? null : [left, right];
}

// Returns the range with the packets around the evidence, or null if that is the whole flow.
function evidenceRange({ from, to, whole }, flow) {
  const end = to ?? from;
  if (whole || end < from) return null;
  const margin = MARGIN_OF_EVIDENCE * (end - from), p = state.packets, held = p.places.get(flow), row = state.flows.rowOf(flow);
  let [before, after] = [margin, margin];
  for (const side of held === undefined ? [] : [0, 1]) {
    const rows = p.rows(2 * held + side), time = (at) => p.time[rows[Math.min(Math.max(at, 0), rows.length - 1)]];
    if (!rows.length) continue;
    before = Math.max(before, from - time(firstAtOrAfter(rows, from, (i) => p.time[i]) - CONTEXT));
    after = Math.max(after, time(firstAtOrAfter(rows, end, (i) => p.time[i]) + CONTEXT) - end);
  }
  const least = Math.max((state.flows.lasted[row] / 1e3) * (held === undefined ? 0.02 : 0), 1e-6);
  const range = withinFlow([from - Math.max(before, least), end + Math.max(after, least)], flow, [from, end]);
  return range && range.map((time) => Number(time.toFixed(9))); // as in the link
}

// Returns the choice that shows a finding; nothing if it cannot be shown.
function evidenceChoice(number) {
  const finding = shownFinding(number);
  if (!finding) return {};
  const flow = flowOfFinding(finding);
  return { flow, with: [], range: evidenceRange(finding, flow), vertical: {}, finding: number, frame: finding.frames[0] ?? null };
}

async function showFinding(number) {
  if (!shownFinding(number)) return;
  steps.byKey = false; // each finding is a step in the history
  await choose(evidenceChoice(number));
  $("flow-view").scrollIntoView();
}

// Shows the next finding that can be shown, or the previous one.
function stepFinding(step) {
  for (let number = (choice.finding ?? (step > 0 ? 0 : data.findings.length + 1)) + step; data.findings[number - 1]; number += step) {
    if (shownFinding(number)) return showFinding(number);
  }
}

// --- marks -----------------------------------------------------------------------------------------------------

// Returns the finding that is chosen, if the flow in view is its own, or if it is about the capture.
function markedFinding() {
  const finding = shownFinding(choice.finding);
  return finding && [null, choice.flow].includes(finding.cited_flow) ? finding : null;
}

// Returns the times of the frames that a finding cites: first and last, and those between that the page holds.
function citedTimes({ cited_flow: flow, capture, frames, from, to }) {
  const p = state.packets, held = p.places.get(flow), cited = new Set(frames), times = new Set([from, to ?? from]);
  for (const side of held === undefined ? [] : [0, 1]) {
    const rows = p.rows(2 * held + side);
    for (let at = firstAtOrAfter(rows, from, (i) => p.time[i]); at < rows.length && p.time[rows[at]] < to; at++) {
      if (cited.has(p.frame[rows[at]]) && p.capture[rows[at]] === capture) times.add(p.time[rows[at]]);
    }
  }
  return [...times];
}

// Returns the band of the evidence in all panels, and a line at each cited frame, as shapes of a Plotly layout.
function evidenceShapes() {
  const finding = markedFinding();
  if (!finding) return [];
  const style = getComputedStyle(document.documentElement), color = (name) => style.getPropertyValue(name).trim();
  const { from } = finding, to = finding.to ?? from, [left, right] = state.range;
  const wider = Math.max(0, (right - left) * POINT_LEAST - (to - from)) / 2, x0 = Math.max(from - wider, Math.min(from, left)), x1 = Math.min(to + wider, Math.max(to, right));
  const common = { xref: "x", yref: "paper", y0: 0, y1: 1, layer: "below" };
  const mark = (x) => ({ ...common, name: "cited", type: "line", x0: x, x1: x, line: { color: color("--muted"), width: 1, dash: "dot" } });
  const band = { ...common, name: "evidence", type: "rect", x0, x1, fillcolor: color("--evidence"), line: { width: 0 } };
  return [band, ...citedTimes(finding).map(mark)];
}

const momentText = (from, to) => {
  const places = Math.min(9, Math.max(2, 1 - Math.floor(Math.log10(Math.max(to - from, 1e-9)))));
  const texts = [from, to].map((value) => value.toFixed(to > from ? places : 3));
  return texts[0] === texts[1] ? `${texts[0]} s` : `${texts[0]}–${texts[1]} s`;
};

// Returns the words of the button that shows a finding: "Show 2.39–2.81 s"; empty if it cannot be shown.
function showText(number) {
  const finding = shownFinding(number);
  return finding ? `Show ${finding.whole ? "the flow" : momentText(finding.from, finding.to ?? finding.from)}` : "";
}

function describeFinding(changed) {
  if (!["flow", "finding"].some((name) => changed.has(name))) return;
  const finding = markedFinding();
  $("shown").hidden = !finding;
  $("shown").textContent = finding ? `Finding ${choice.finding}: ${finding.sentence}` : "";
  for (const button of document.querySelectorAll("[data-show]")) {
    if (finding && Number(button.dataset.show) === choice.finding) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  }
}

// Any element with data-show shows the finding of that number, also one that is made later.
function listenForFindings() {
  for (const button of document.querySelectorAll("button[data-show]")) {
    button.textContent = showText(Number(button.dataset.show));
    button.hidden = !button.textContent;
  }
  document.addEventListener("click", (event) => {
    const asked = event.target.closest("[data-show]");
    if (asked) showFinding(Number(asked.dataset.show));
  });
  document.addEventListener("keydown", (event) => {
    if (isTyped(event) || $("keys").open) return;
    if (event.key === "n" || event.key === "p") stepFinding(event.key === "n" ? 1 : -1);
  });
  steps.complete = (found) => (found.flow === null ? { ...found, ...evidenceChoice(found.finding) } : found);
  onChoice(describeFinding);
}
