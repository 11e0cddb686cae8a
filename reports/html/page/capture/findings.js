// @ts-check
// The findings by cause: their pins, and the mark of the chosen one. page/capture/show.js shows the evidence of a finding.
import { elementAt } from "../elements.js";
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
    sentence: elementAt(".sentence b", item).textContent ?? "",
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

let isEveryCauseShown = false; // beyond the first ones

// Shows the causes of the selected flows alone, the first of them at once, and says how many there are beside them.
function selectCauses() {
  const items = [...document.querySelectorAll("li.finding[data-place]")], most = isEveryCauseShown ? items.length : Number($("findings").dataset.first);
  let count = 0;
  for (const item of items) {
    const isOfSelection = isCauseSelected(Number(item.dataset.place));
    count += Number(isOfSelection);
    item.classList.toggle("beside", !isOfSelection);
    item.toggleAttribute("data-late", isOfSelection && count > most);
  }
  const further = count - Math.min(count, most), more = elementAt("#more-findings");
  if (more) more.hidden = !further;
  if (more) more.textContent = `${further} more cause${further === 1 ? "" : "s"}`;
  const left = items.filter((item) => !item.classList.contains("beside")).length;
  $("causes-note").hidden = left === items.length;
  $("causes-note").textContent = left ? `${left} of ${items.length} causes are of this selection.` : "No cause is of this selection.";
}

/** @param {string} selector @returns {NodeListOf<HTMLDetailsElement>} */
const detailsOf = (selector) => document.querySelectorAll(selector);

export function startFindings() {
  $("more-findings")?.addEventListener("click", () => {
    isEveryCauseShown = true;
    selectCauses();
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
