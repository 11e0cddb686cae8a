// @ts-check
// The findings by cause: their pins, and the mark of the chosen one. page/capture/show.js shows the evidence of a finding.
import { elementAt, targetOf } from "../elements.js";
import { choice, hasAny, onChoice } from "../link.js";
import { $ } from "../plotly.js";
import { isCauseSelected } from "../selection/selection.js";
import { findingOf, shownFinding } from "./evidence.js";

/** @type {Cause[] | null} */
let causes = null; // those listed, as soon as they were asked for

// Returns the causes that the page lists, with the numbers of their findings; those without findings have nothing to show.
export function causesListed() {
  causes ||= [...document.querySelectorAll('li.finding[data-numbers]:not([data-numbers=""])')].map((item) => ({
    item,
    place: elementAt(".pin", item).textContent ?? "", // in the list
    main: Number(elementAt(".cost [data-show]", item).dataset.show), // the number of the cause: that of the finding that Show shows
    numbers: (item.dataset.numbers ?? "").split(" ").map(Number),
    sentence: (elementAt(".sentence", item).textContent ?? "").trim().replace(/\s+/g, " "),
  }));
  return causes;
}

// Marks the cause whose finding is chosen, in the list and above the timeline.
export function markCause() {
  for (const { item, main, numbers } of causesListed()) {
    const on = choice.finding !== null && numbers.includes(choice.finding);
    item.classList.toggle("on", on);
    const pin = document.querySelector(`#pins [data-finding="${main}"]`);
    pin?.classList.toggle("on", on);
    pin?.setAttribute("aria-current", String(on));
  }
}

// Shows the causes of the selected flows alone, and says how many there are beside them.
function selectCauses() {
  const items = [...document.querySelectorAll("li.finding[data-place]")];
  for (const item of items) item.classList.toggle("beside", !isCauseSelected(Number(item.dataset.place)));
  const left = items.filter((item) => !item.classList.contains("beside")).length;
  $("causes-note").hidden = left === items.length;
  $("causes-note").textContent = left ? `${left} of ${items.length} causes are of this selection.` : "No cause is of this selection.";
}

/** @param {string} selector @returns {NodeListOf<HTMLDetailsElement>} */
const detailsOf = (selector) => document.querySelectorAll(selector);

export function startFindings() {
  $("more-findings")?.addEventListener("click", (event) => {
    for (const item of document.querySelectorAll(".finding[data-late]")) item.removeAttribute("data-late");
    targetOf(event).closest("p")?.remove();
  });
  onChoice((changed) => changed.has("finding") && markCause());
  onChoice((changed) => hasAny(changed, ["find", "only", "during"]) && selectCauses());
  addEventListener("beforeprint", () => {
    for (const details of detailsOf("#findings details:not([open])")) details.dataset.printed = String((details.open = true));
  });
  addEventListener("afterprint", () => {
    for (const details of detailsOf("#findings [data-printed]")) {
      details.open = false;
      delete details.dataset.printed;
    }
  });
}

// Returns the number of the first listed finding that is about a flow of the page; nothing without one.
export function firstAboutFlow() {
  return causesListed().find(({ main }) => findingOf(main).cited_flow !== null && shownFinding(main))?.main;
}
