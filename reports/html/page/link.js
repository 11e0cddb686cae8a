// @ts-check
// The choice: what a reader selected. The link holds it, each change is a step of the history that Back undoes, and an edited link
// is obeyed. A part of the page changes the choice by choose(), and draws it in a function that it gives to onChoice().
//
// #flow=3&with=5,9&t=1.5-2.25&y=sequence:0-90000&finding=2&frame=7&only=port:443&toggled=window&during=1-3&size=rate:120&tab=ladder&find=10.0.0.1&stack=port
import { $, data } from "./plotly.js";
import { whole } from "./units.js";

/** @type {Choice} */
const UNCHOSEN = {
  flow: null, // number
  with: [], // numbers of the flows that are overlaid, the chosen one among them, at the places of their colors; null: no flow
  range: null, // seconds since the base of the page, [from, to]; null: the whole flow
  vertical: {}, // range of each panel that was set, by its name
  finding: null, // number in the list of findings, from 1
  frame: null, // number of the frame that is shown decoded
  toggled: [], // names of series whose visibility is not the usual one
  size: {}, // height of each panel that was resized, and of the dock, px
  tab: null, // name of the tab below the plots
  match: "", // filter of the packet list
  find: "", // words of the search
  only: [], // facets that flows must have to be selected, as "port:443"
  during: null, // seconds since the base of the page: the brush of the timeline, in which flows must live to be selected
  stack: null, // "server", "client", "port" or "cause": what the timeline is stacked by
  group: null, // "client", "server" or "port": what the list of flows is grouped by
};
/** @type {Choice} */
export const choice = { ...UNCHOSEN };
export const WITH_MOST = 8; // flows
const ONLY_MOST = 100; // facets in a link
const STEP = "step"; // marks history entries of this page
/** @type {Draw[]} */
const followers = []; // functions that draw a change, in their order
let isContinued = false, wasContinued = false; // whether the change is one step with the one before
/** @param {Record<string, GrowingPoints>} found */
/** @type {(found: LinkedChoice) => LinkedChoice} */
let complete = (found) => found; // adds to a choice of the link what follows from it
/** @param {number} flow */
let isInPage = (flow) => flow >= 0;

/** @param {Draw} draw */
export const onChoice = (draw) => followers.push(draw);
/** @param {(found: LinkedChoice) => LinkedChoice} change */
export const completeLinks = (change) => { complete = change; };

// The changes from now on are one step of the history, until the pointer is pressed or a step is ended.
export const continueStep = () => { isContinued = true; };
export const endStep = () => { isContinued = false; };
export const hasContinued = () => wasContinued; // whether the last change was one step with those before

// --- to and from text ------------------------------------------------------------------------------------------

/** @param {number} value @param {number} places */
export const trimmed = (value, places) => (places ? value.toFixed(places).replace(/\.?0+$/, "") : value.toFixed(0));
const SPAN = /^(-?\d+(?:\.\d+)?)-(-?\d+(?:\.\d+)?)$/;

/** @param {string} text @returns {Span | null} */
function spanIn(text) {
  const [from, to] = (text.match(SPAN) || []).slice(1).map(Number);
  return from < to ? [from, to] : null;
}

/** @param {Span} range @param {number} places */
const spanText = (range, places) => range.map((value) => trimmed(value, places)).join("-");

// A list of flows begins with the chosen one, unless this one has another place.
/** @param {(number | null)[]} flows */
const withText = (flows) => (flows[0] === choice.flow ? flows.slice(1) : flows).map((flow) => flow ?? "").join(",");

// Returns the flows of a list, which may lack the chosen one; none if there is no other than this one.
/** @param {string} text @param {number} chosen */
function withIn(text, chosen) {
  const named = text.split(",").map((word) => (/^\d{1,15}$/.test(word) ? Number(word) : null));
  const flows = (named.includes(chosen) ? named : [chosen, ...named]).slice(0, WITH_MOST);
  const once = flows.map((flow, i) => (flows.indexOf(flow) === i ? flow : null));
  return once.includes(chosen) && once.some((flow) => flow !== null && flow !== chosen) ? once : [];
}

const SIZE = /^(\d{2,4})$/;

function link() {
  const parts = [];
  for (const name of /** @type {const} */ (["flow", "finding", "frame"])) if (choice[name] !== null) parts.push(`${name}=${choice[name]}`);
  if (choice.with.length) parts.push(`with=${withText(choice.with)}`);
  if (choice.range) parts.push(`t=${spanText(choice.range, 9)}`);
  for (const [panel, range] of Object.entries(choice.vertical)) parts.push(`y=${panel}:${spanText(range, 6)}`);
  for (const facet of choice.only) parts.push(`only=${encodeURIComponent(facet)}`);
  if (choice.during) parts.push(`during=${spanText(choice.during, 9)}`);
  for (const series of choice.toggled) parts.push(`toggled=${encodeURIComponent(series)}`);
  for (const [panel, height] of Object.entries(choice.size)) parts.push(`size=${panel}:${height}`);
  for (const name of /** @type {const} */ (["tab", "match", "find", "stack", "group"])) if (choice[name]) parts.push(`${name}=${encodeURIComponent(choice[name])}`);
  return `#${parts.join("&")}`;
}

// Returns the text unchanged if it cannot be decoded: the page then names a flow that it lacks.
/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// Returns the choice of the link; a flow that is no number stays text, which the page reports as missing.
function linked() {
  const parts = location.hash.slice(1).split("&").map((part) => part.split("="));
  /** @param {string} name */
  const named = (name) => parts.filter(([key, value]) => key === name && value).map(([, value]) => decoded(value));
  /** @param {string} name */
  const number = (name) => (/^\d+$/.test(named(name)[0]) ? Number(named(name)[0]) : null);
  /** @param {string} key @param {(text: string) => unknown} test */
  const ofPanels = (key, test) => named(key).map((value) => value.split(":")).filter(([panel, value]) => (data.figure.panels.some(({ name }) => name === panel) || (key === "size" && panel === "dock")) && test(value || ""));
  const vertical = ofPanels("y", spanIn), sizes = ofPanels("size", (text) => SIZE.test(text)), flow = number("flow") ?? named("flow")[0] ?? null;
  return complete({
    flow,
    with: typeof flow === "number" ? withIn(named("with")[0] || "", flow) : [],
    range: spanIn(named("t")[0] || ""),
    vertical: Object.fromEntries(vertical.map(([panel, text]) => [panel, /** @type {Span} */ (spanIn(text))])),
    finding: number("finding"),
    only: [...new Set(named("only"))].slice(0, ONLY_MOST),
    during: spanIn(named("during")[0] || ""),
    frame: number("frame"),
    toggled: named("toggled"),
    size: Object.fromEntries(sizes.map(([panel, height]) => [panel, Number(height)])),
    tab: named("tab")[0] ?? null,
    match: named("match")[0] ?? "",
    find: named("find")[0] ?? "",
    stack: named("stack")[0] ?? null,
    group: named("group")[0] ?? null,
  });
}

// --- settings --------------------------------------------------------------------------------------------------

// Returns the choice's settings with one of them set to a value, or unset if the value is the usual one.
/** @param {string} name @param {number} value @param {number} usual */
export const withSetting = (name, value, usual) => [...choice.toggled.filter((one) => !one.startsWith(`${name}:`)), ...(value === usual ? [] : [`${name}:${value}`])];
/** @param {string} name */
export const turned = (name) => (choice.toggled.includes(name) ? choice.toggled.filter((one) => one !== name) : [...choice.toggled, name]);

// Returns the number after a setting's name in the choice, or `usual`.
/** @param {string} name @param {number} usual */
export function setting(name, usual) {
  const found = choice.toggled.find((one) => one.startsWith(`${name}:`));
  return found === undefined ? usual : Number(found.slice(name.length + 1));
}

// The flow that is drawn, of which one is chosen when the page begins; -1 in a page without flows.
export const chosenFlow = () => choice.flow ?? -1;

/** @param {Set<keyof Choice>} changed @param {(keyof Choice)[]} names */
export const hasAny = (changed, names) => names.some((name) => changed.has(name));

// --- changes ---------------------------------------------------------------------------------------------------

/** @param {unknown} a @param {unknown} b */
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

// Assigns and draws a change; parts receive the set of the names that changed.
/** @param {Change} change */
async function apply(change) {
  const names = /** @type {(keyof Choice)[]} */ (Object.keys(change));
  const changed = new Set(names.filter((name) => !same(choice[name], change[name])));
  Object.assign(choice, change);
  if (changed.size) for (const draw of followers) await draw(changed);
}

// Changes the choice as a step that Back undoes; consecutive steps by keys are one. Another flow is shown whole, or as far as the
// brush reaches, unless the change has a range, and without the flows that were overlaid.
/** @param {Change} change */
export async function choose(change) {
  const other = change.flow !== undefined && change.flow !== choice.flow;
  await apply(other ? { with: [], range: choice.during, vertical: {}, finding: null, frame: null, ...change } : change);
  if (location.hash === link()) return;
  const again = isContinued && wasContinued;
  wasContinued = isContinued;
  history[again ? "replaceState" : "pushState"](STEP, "", link());
}

// Obeys the link. Returns whether it names a flow of the page.
/** @param {boolean} [opening] */
async function follow(opening = false) {
  const wanted = linked(), held = typeof wanted.flow === "number" && isInPage(wanted.flow);
  wasContinued = false;
  $("missing").hidden = held || wanted.flow === null;
  if (!held) $("missing").textContent = `Flow ${wanted.flow} of the link is not in the page, which has ${whole(data.flows.held)} of ${whole(data.flows.count)} flows, numbered from 0.`;
  if (held) await apply(/** @type {Change} */ (wanted));
  // The browser restores the scroll position of a step; a typed link has none. A selection alone begins at the top.
  if (wanted.flow !== null && /[#&](flow|finding)=/.test(location.hash) && (opening || history.state !== STEP)) $(held ? "chosen" : "missing").scrollIntoView();
  if (held) history.replaceState(STEP, "");
  return held;
}

// Begins with the link's choice, or with another without a step. `hasFlow` tells whether the page has the flow of a number.
/** @param {Change} otherwise @param {(flow: number) => boolean} hasFlow */
export async function begin(otherwise, hasFlow) {
  isInPage = hasFlow;
  addEventListener("pointerdown", endStep, true);
  addEventListener("hashchange", () => follow());
  if ((await follow(true)) || otherwise.flow === undefined) return;
  await apply(otherwise);
  history.replaceState(STEP, "", link());
}
