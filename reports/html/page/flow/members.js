// @ts-check
// The members of a finding about several flows, side by side on one time axis and one scale: throughput, and a tick for each loss.
// If they are many, each picture has the flows of a client, else of a server.
import { causeOf } from "../capture/evidence.js";
import { tables } from "../capture/tables.js";
import { SVG } from "../elements.js";
import { roving } from "../keys.js";
import { WITH_MOST, choice, choose, chosenFlow, endStep, hasAny, onChoice } from "../link.js";
import { endOf, flowAt } from "../list/flows.js";
import { $, data } from "../plotly.js";
import { momentText, prefixed, whole } from "../units.js";
import { isLoss, segmentsOf } from "./distributions.js";
import { adds, turnFlow } from "./overlaid.js";

const ALONE_MOST = 12; // members that have a picture each
const PICTURES_MOST = 20;
const MEMBER_BINS = 150;
const PICTURE = { width: 300, rate: 46, tick: 8 }; // of the drawing, which is stretched to its place

// --- which flows -------------------------------------------------------------------------------------------------

// Returns the flows of the chosen finding that the page lists; fewer than two are no members.
/** @param {number | null} number */
function membersOf(number) {
  const flows = (number && data.findings?.[number - 1]?.flows) || [];
  const listed = flows.filter((flow) => tables.flows.rowOf(flow) >= 0);
  return listed.length > 1 ? listed : [];
}

/** @param {number} flow @param {"source" | "destination"} side */
const addressOf = (flow, side) => tables.flows.addresses[tables.flows[side][tables.flows.rowOf(flow)]];

/** @param {string} name @param {number[]} flows @returns {MemberPicture} */
const emptyPicture = (name, flows) => ({ name, flows, rates: new Float64Array(MEMBER_BINS), losses: [], lost: 0 });

// Returns the pictures: name and flows of each, and how the members are grouped.
/** @param {number[]} members @returns {{ by: string, pictures: MemberPicture[] }} */
function grouped(members) {
  const alone = members.map((flow) => emptyPicture(`flow ${flow} · ${endOf(tables.flows.rowOf(flow), "source")}`, [flow]));
  if (members.length <= ALONE_MOST) return { by: "", pictures: alone };
  for (const [by, side] of /** @type {const} */ ([["client", "source"], ["server", "destination"]])) {
    /** @type {Map<string, number[]>} */
    const groups = new Map();
    for (const flow of members) groups.set(addressOf(flow, side), [...(groups.get(addressOf(flow, side)) || []), flow]);
    if (groups.size > 1) return { by, pictures: [...groups].map(([name, flows]) => emptyPicture(name, flows)) };
  }
  return { by: "", pictures: alone };
}

// --- their traffic -----------------------------------------------------------------------------------------------

// Returns the span of the members' bins, in seconds since the base of the page.
/** @param {Set<number>} isMember @returns {Span | null} */
function spanOf(isMember) {
  const s = tables.series;
  let from = Infinity, to = -Infinity;
  for (let i = 0; i < s.flow.length; i++) {
    if (!isMember.has(s.flow[i])) continue;
    from = Math.min(from, s.start_ns[i] / 1e3);
    to = Math.max(to, (s.start_ns[i] + s.width_ns[i]) / 1e3);
  }
  return from < to ? [from, to] : null;
}

// Adds bit/s of each bin and the losses to the pictures: of each flow, the direction that carries more. A row of the series table
// is spread over the bins that it covers.
/** @param {MemberPicture[]} pictures @param {Span} range */
function fillPictures(pictures, [from, to]) {
  const s = tables.series, e = tables.events, width = (to - from) / MEMBER_BINS, owner = new Map();
  for (const picture of pictures) {
    for (const flow of picture.flows) owner.set(flow, { picture, main: flowAt(tables.flows.rowOf(flow)).main });
  }
  for (let i = 0; i < s.flow.length; i++) {
    const own = owner.get(s.flow[i]);
    if (!own || s.direction[i] !== own.main) continue;
    const start = (s.start_ns[i] / 1e3 - from) / width, end = start + s.width_ns[i] / 1e3 / width;
    for (let bin = Math.max(0, Math.floor(start)); bin < Math.min(MEMBER_BINS, end); bin++) {
      own.picture.rates[bin] += s.throughput_bps[i] * (Math.min(end, bin + 1) - Math.max(start, bin));
    }
  }
  for (let i = 0; i < e.flow.length; i++) {
    const own = owner.get(e.flow[i]);
    if (!own || !isLoss(i) || e.direction[i] !== own.main) continue;
    own.picture.losses.push(e.time_ns[i] / 1e3);
    own.picture.lost += segmentsOf(e, i);
  }
}

// --- drawing -----------------------------------------------------------------------------------------------------

/** @template {keyof HTMLElementTagNameMap} K @param {K} tag @param {string} className @param {string} [text] */
function part(tag, className, text = "") {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

/** @param {Float64Array} rates @param {number} most */
function pathOfRates(rates, most) {
  const step = PICTURE.width / MEMBER_BINS, y = (/** @type {number} */ value) => (PICTURE.rate * (1 - value / most)).toFixed(1);
  return [...rates].map((value, k) => `${k ? "L" : "M"}${(k * step).toFixed(1)} ${y(value)}H${((k + 1) * step).toFixed(1)}`).join("");
}

/** @param {number[]} losses @param {Span} range */
function pathOfLosses(losses, [from, to]) {
  const places = new Set(losses.map((time) => ((PICTURE.width * (time - from)) / (to - from)).toFixed(1)));
  return [...places].map((x) => `M${x} ${PICTURE.rate + 3}v${PICTURE.tick}`).join("");
}

/** @param {MemberPicture} picture @param {Span} span @param {number} most */
function drawing(picture, span, most) {
  const svg = document.createElementNS(SVG, "svg"), bottom = PICTURE.rate + 3 + PICTURE.tick;
  svg.setAttribute("viewBox", `0 0 ${PICTURE.width} ${bottom}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  const lines = `M0 0H${PICTURE.width}M0 ${PICTURE.rate / 2}H${PICTURE.width}M0 ${PICTURE.rate}H${PICTURE.width}`;
  for (const [name, d] of [["scale", lines], ["rate", pathOfRates(picture.rates, most)], ["loss", pathOfLosses(picture.losses, span)]]) {
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("class", name);
    path.setAttribute("d", d);
    svg.append(path);
  }
  return svg;
}

// Returns a picture as a button that chooses its flow, or the first flow of a group.
/** @param {MemberPicture} picture @param {Span} span @param {number} most */
function pictureButton(picture, span, most) {
  const button = part("button", "member"), { name, flows, lost } = picture, head = part("span", "head");
  button.type = "button";
  button.dataset.flows = flows.join(" ");
  head.append(part("b", "", name), part("span", "", lost ? `${whole(lost)} lost` : ""));
  button.append(head, drawing(picture, span, most));
  button.setAttribute("aria-label", `${name}${flows.length > 1 ? `, ${flows.length} flows` : ""}: ${lost ? `${whole(lost)} lost, ` : ""}at most ${prefixed(Math.max(...picture.rates), "bit/s")}`);
  button.addEventListener("click", (event) => (adds(event) ? turnFlow(flows[0]) : chooseMember(flows.includes(chosenFlow()) ? chosenFlow() : flows[0], true)));
  return button;
}

// Returns the next round number.
/** @param {number} value */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 1.5, 2, 3, 4, 5, 6, 8].find((times) => times * power >= value) ?? 10) * power;
}

// Returns the name of the shown finding as it stands above its flow: the cause, if the finding is its main one.
function nameOfShown() {
  const cause = causeOf(choice.finding);
  return cause?.main === choice.finding ? `Cause ${data.causes.indexOf(cause) + 1}` : `Finding ${choice.finding}`;
}

// Returns how many flows are drawn, and of how many if the page lists only the first ones.
/** @param {number[]} members */
function flowsOfShown(members) {
  const cause = causeOf(choice.finding), all = cause?.main === choice.finding && cause.findings.length === 1 ? cause.members : 0;
  return all > members.length ? `${whole(members.length)} of ${whole(all)} flows` : `${whole(members.length)} flows`;
}

/** @param {Span} range */
const spanOfText = ([from, to]) => momentText(Math.max(0, from), to);

/** @param {number[]} members @param {{ by: string, pictures: MemberPicture[] }} groups @param {Span} span @param {number} most @param {number} held */
function describeMembers(members, { by, pictures }, span, most, held) {
  const several = by ? `by ${by}` : "each flow", hidden = pictures.length - PICTURES_MOST;
  const parts = [`${several}, same scale: 0 to ${prefixed(most, "bit/s")}`, ...(pictures.some(({ lost }) => lost) ? ["ticks are losses when they were detected"] : []), spanOfText(span)];
  if (hidden > 0) parts.push(`${whole(hidden)} more ${by ? `${by}s` : "flows"} not drawn`);
  if (held < members.length) parts.push(`${whole(members.length - held)} members have no data in the page`);
  $("members-title").textContent = `${nameOfShown()}: ${flowsOfShown(members)} on one axis`;
  $("members-note").textContent = parts.join(" · ");
}

/** @param {number[]} members */
function drawMembers(members) {
  const within = new Set(data.series_flows), held = members.filter((flow) => within.has(flow)), span = spanOf(new Set(held));
  $("members-pictures").replaceChildren();
  if (!span) {
    $("members-title").textContent = `${nameOfShown()}: ${flowsOfShown(members)}`;
    $("members-note").textContent = "Their traffic over time is not in the page.";
    return;
  }
  const groups = grouped(held), { pictures } = groups;
  fillPictures(pictures, span);
  const most = roundUp(Math.max(1, ...pictures.map(({ rates }) => Math.max(...rates))));
  describeMembers(members, groups, span, most, held.length);
  $("members-pictures").append(...pictures.slice(0, PICTURES_MOST).map((picture) => pictureButton(picture, span, most)));
  roving($("members-pictures"), "button", "both");
}

// --- choosing ----------------------------------------------------------------------------------------------------

// Chooses a member with the same finding and range.
/** @param {number} flow @param {boolean} [scrolls] */
async function chooseMember(flow, scrolls = false) {
  endStep();
  const { finding, range } = choice;
  await choose({ flow, finding, range });
  if (scrolls) $("flow-view").scrollIntoView();
}

/** @param {number} step */
function stepMember(step) {
  const members = membersOf(choice.finding), at = members.indexOf(chosenFlow());
  const next = at < 0 ? 0 : (at + step + members.length) % members.length;
  return chooseMember(members[next]);
}

// Overlays the chosen member and the first of the others; the finding stays chosen.
async function overlayMembers() {
  const members = membersOf(choice.finding), first = members.includes(chosenFlow()) ? chosenFlow() : members[0];
  endStep();
  await choose({ flow: first, finding: choice.finding, range: choice.range, with: membersWith(members, first), vertical: {} });
  $("with").scrollIntoView();
}

/** @param {number[]} members @param {number} first */
const membersWith = (members, first) => [first, ...members.filter((flow) => flow !== first)].slice(0, WITH_MOST);

/** @param {number[]} members */
function markMember(members) {
  const at = members.indexOf(chosenFlow());
  $("members-at").textContent = at < 0 ? "" : `flow ${choice.flow}, member ${at + 1} of ${whole(members.length)}`;
  for (const button of $("members-pictures").querySelectorAll(":scope > *")) {
    if ((button.dataset.flows ?? "").split(" ").includes(String(choice.flow))) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  }
}

/** @param {Set<keyof Choice>} changed */
function membersChanged(changed) {
  if (!hasAny(changed, ["finding", "flow"])) return;
  const members = membersOf(choice.finding);
  $("members").hidden = !members.length;
  if (members.length && changed.has("finding")) drawMembers(members);
  $("overlay-members").textContent = members.length > WITH_MOST ? `overlay ${WITH_MOST} of them` : "overlay them";
  markMember(members);
}

export function startMembers() {
  $("overlay-members").addEventListener("click", overlayMembers);
  $("previous-member").addEventListener("click", () => stepMember(-1));
  $("next-member").addEventListener("click", () => stepMember(1));
  onChoice(membersChanged);
}
