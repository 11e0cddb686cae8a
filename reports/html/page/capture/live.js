// @ts-check
// The page of a running analysis (`wiretale view --follow`): it says how old its answer is, and takes the next one as long as nobody has
// chosen anything; then a button shows it.
import { choice } from "../link.js";
import { tables } from "./tables.js";
import { nameOf } from "../list/flows.js";
import { $, data } from "../plotly.js";
import { whole } from "../units.js";

const ASK_MS = 1000, STALE_S = 120; // without a new file
const KEPT = "wiretale-flow"; // in the session: the chosen flow, whose number is another one in the next page
let isTouched = false;

/** @param {number} row */
const identityOf = (row) => `${nameOf(row)} ${Math.round(Number(BigInt(data.base) / 1000000n) + tables.flows.start[row])}`;

// Shows the newest answer, and in it the flow that is chosen now if somebody chose it.
function showNewest() {
  const row = typeof choice.flow === "number" ? tables.flows.rowOf(choice.flow) : -1;
  if (isTouched && row >= 0) sessionStorage.setItem(KEPT, identityOf(row));
  history.replaceState(null, "", location.pathname);
  location.reload();
}

// Returns the number of the flow that was chosen in the page before; null if there was none or it is gone.
export function keptFlow() {
  const kept = data.live && sessionStorage.getItem(KEPT);
  sessionStorage.removeItem(KEPT);
  if (!kept) return null;
  const row = tables.flows.number.findIndex((_, i) => identityOf(i) === kept);
  return row < 0 ? null : tables.flows.number[row];
}

/** @param {number} age seconds */
const ageWords = (age) => (age < 100 ? `${whole(age)} s` : `${whole(Math.round(age / 60))} min`);

async function ask() {
  const answer = await fetch("version").then((response) => response.json()).catch(() => null);
  if (!answer) {
    $("live-words").textContent = "wiretale view has ended: start it again";
    return;
  }
  const isNewer = answer.version !== null && answer.version !== data.live;
  if (isNewer && !isTouched) return showNewest();
  const stopped = answer.goes_on ? (answer.age > STALE_S ? "; no further file was finished" : "") : "; the analysis has stopped, see the terminal of wiretale view";
  $("live-words").textContent = isNewer ? "A newer answer is there." : `Live: as of ${ageWords(answer.age ?? 0)} ago${stopped}`;
  $("live-show").hidden = !isNewer;
}

// Asks for newer answers, if the page is of a running analysis.
export function startLive() {
  if (!data.live) return;
  for (const kind of ["pointerdown", "keydown"]) addEventListener(kind, (event) => { isTouched ||= event.isTrusted; }, { capture: true });
  $("live-show").addEventListener("click", showNewest);
  $("live").hidden = false;
  setInterval(ask, ASK_MS);
  ask();
}
