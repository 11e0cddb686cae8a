// @ts-check
// Evidence: Show, a pin, n or p chooses flow, range and mark of a finding at once; the mark is a pale band in all panels.
import { targetOf } from "../elements.js";
import { isTyped } from "../keys.js";
import { choice, choose, completeLinks, endStep, hasAny, onChoice } from "../link.js";
import { ordered } from "../list/flow_list.js";
import { $, data } from "../plotly.js";
import { largestSelected } from "../selection/selection.js";
import { momentText } from "../units.js";
import { causeOf, evidenceRange, markedFinding, shownFinding } from "./evidence.js";
import { firstAboutFlow } from "./findings.js";
import { tables } from "./tables.js";

// Returns the flow of a packet that the page has, else null.
/** @param {number} frame @param {number | null} [capture] any if it is not given */
function flowOfFrame(frame, capture) {
  const p = tables.packets, at = p.frame.findIndex((one, i) => one === frame && (capture ?? p.capture[i]) === p.capture[i]);
  return at < 0 ? null : [...p.places.keys()][p.who[at] >> 1];
}

// Returns the flow in which a finding is shown. One about the capture is shown in the flow of its packet if the page has it, else in
// the flow in view.
/** @param {Finding} finding */
function flowOfFinding({ cited_flow: flow, capture, frames }) {
  if (flow !== null) return flow;
  return flowOfFrame(frames[0], capture) ?? choice.flow ?? shownFinding(firstAboutFlow())?.cited_flow ?? tables.flows.number[ordered()[0]];
}

// Returns the choice that shows a finding; nothing if it cannot be shown.
/** @param {number | null | undefined} number @returns {Change} */
export function evidenceChoice(number) {
  const finding = shownFinding(number);
  if (!finding) return {};
  const flow = flowOfFinding(finding);
  return { flow, with: [], range: evidenceRange(finding, flow), vertical: {}, finding: number, frame: finding.frames[0] ?? null };
}

// Returns the choice of a page that opens at a finding: the range of its cause if this is one span, else the whole flow, in which all of
// its spans are marked.
/** @param {number} number @returns {Change} */
export function openingChoice(number) {
  const change = evidenceChoice(number), finding = shownFinding(number), cause = causeOf(number);
  if (!finding || !cause || typeof change.flow !== "number") return change;
  return { ...change, range: cause.span && evidenceRange({ ...finding, from: cause.span[0], to: cause.span[1] }, change.flow) };
}

/** @param {number} number */
async function showFinding(number) {
  if (!shownFinding(number)) return;
  endStep(); // each finding is a step in the history
  await choose(evidenceChoice(number));
  $("flow-view").scrollIntoView();
}

// Shows the next finding that can be shown, or the previous one.
/** @param {number} step */
function stepFinding(step) {
  for (let number = (choice.finding ?? (step > 0 ? 0 : data.findings.length + 1)) + step; data.findings[number - 1]; number += step) {
    if (shownFinding(number)) return showFinding(number);
  }
}

// --- marks -----------------------------------------------------------------------------------------------------

// Returns what is marked: the title of a cause, or of another finding the sentence.
function markedText() {
  const finding = markedFinding(), cause = causeOf(choice.finding);
  if (!finding) return "";
  return cause?.main === choice.finding ? `Cause ${data.causes.indexOf(cause) + 1}: ${cause.title}` : `Finding ${choice.finding}: ${finding.sentence}`;
}

// Returns the name of the button that shows a finding: "Show 2.39–2.81 s"; empty if it cannot be shown.
/** @param {number} number */
function showText(number) {
  const finding = shownFinding(number);
  return finding ? `Show ${finding.whole ? "the flow" : momentText(finding.from, finding.to ?? finding.from)}` : "";
}

/** @param {Set<keyof Choice>} changed */
function describeFinding(changed) {
  if (!hasAny(changed, ["flow", "finding"])) return;
  const finding = markedFinding();
  $("shown").hidden = !finding;
  $("shown").textContent = markedText();
  for (const button of document.querySelectorAll("[data-show]")) {
    if (finding && Number(button.dataset.show) === choice.finding) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  }
}

// A link without a flow is about that of its finding or of its frame, or about the largest flow of its selection.
/** @param {LinkedChoice} found @returns {LinkedChoice} */
function completed(found) {
  if (found.flow !== null) return found;
  const flowOfPacket = found.finding === null && found.frame !== null ? flowOfFrame(found.frame) : null;
  if (flowOfPacket !== null) return { ...found, flow: flowOfPacket };
  const shown = { ...found, ...evidenceChoice(found.finding) }, selects = found.only.length > 0 || found.find !== "" || found.during !== null;
  if (shown.flow !== null || !(selects || found.group || found.stack)) return shown;
  const flow = largestSelected(found) ?? tables.flows.number[ordered()[0]] ?? null;
  return { ...found, flow, range: found.range ?? found.during };
}

// Any element with data-show shows the finding of that number, also one that is made later.
export function listenForFindings() {
  for (const button of document.querySelectorAll("button[data-show]")) {
    const name = showText(Number(button.dataset.show));
    button.title = name;
    button.setAttribute("aria-label", name);
    button.hidden = !name;
  }
  document.addEventListener("click", (event) => {
    const asked = targetOf(event).closest("[data-show]");
    if (asked) showFinding(Number(asked.dataset.show));
  });
  document.addEventListener("keydown", (event) => {
    if (isTyped(event) || $("keys").open) return;
    if (event.key === "n" || event.key === "p") stepFinding(event.key === "n" ? 1 : -1);
  });
  completeLinks(completed);
  onChoice(describeFinding);
}

/** @param {Cause} cause */
export const showCause = ({ main }) => showFinding(main);
