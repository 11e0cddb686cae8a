// @ts-check
// The findings by cause: their pins, and the mark of the chosen one. page/capture/show.js shows the evidence of a finding.
import { choice, onChoice } from "../link.js";
import { $ } from "../plotly.js";
import { findingOf, shownFinding } from "./evidence.js";

let causes = null; // those listed, as soon as they were asked for

// Returns the causes that the page lists, with the numbers of their findings; those without findings have nothing to show.
export function causesListed() {
  causes ||= [...document.querySelectorAll('li.finding[data-numbers]:not([data-numbers=""])')].map((item) => ({
    item,
    main: Number(item.querySelector(".cost [data-show]").dataset.show), // the number of the cause: that of the finding that Show shows
    numbers: item.dataset.numbers.split(" ").map(Number),
    sentence: item.querySelector(".sentence").textContent.trim().replace(/\s+/g, " "),
  }));
  return causes;
}

// Marks the cause whose finding is chosen, in the list and above the timeline.
export function markCause() {
  const pins = [...document.querySelectorAll("#pins .pin")];
  for (const { item, main, numbers } of causesListed()) {
    const on = numbers.includes(choice.finding);
    item.classList.toggle("on", on);
    const pin = pins.find((one) => Number(one.textContent) === main);
    pin?.classList.toggle("on", on);
    pin?.setAttribute("aria-current", on);
  }
}

export function startFindings() {
  $("more-findings")?.addEventListener("click", (event) => {
    for (const item of document.querySelectorAll(".finding[data-late]")) item.removeAttribute("data-late");
    event.target.closest("p").remove();
  });
  onChoice((changed) => changed.has("finding") && markCause());
  addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("#findings details:not([open])")) part.dataset.printed = String((part.open = true));
  });
  addEventListener("afterprint", () => {
    for (const part of document.querySelectorAll("#findings [data-printed]")) {
      part.open = false;
      delete part.dataset.printed;
    }
  });
}

// Returns the number of the first listed finding that is about a flow of the page; nothing without one.
export function firstAboutFlow() {
  return causesListed().find(({ main }) => findingOf(main).cited_flow !== null && shownFinding(main))?.main;
}
