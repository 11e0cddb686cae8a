// @ts-check
// Rows of which only those in view exist, so that a list of a million scrolls like one of twenty.
//
// A tall empty element gives the scroll bar; what is drawn sticks to the top of the view and is drawn anew for each position.
import { elementAt } from "../elements.js";

const SPACE_MOST = 8e6; // px; browsers limit the height of elements, so that a longer list scrolls by a share

// Makes the rows of a scrolled container: `draw(first, count)` draws `count` rows from `first` on, each `row()` px high, at most
// `most()`, below a head of `head` px. Returns functions that set the number of rows and bring a row into scroll.
/** @param {HTMLElement} container @param {{ row: () => number, head: number, most: () => number }} sizes @param {(first: number, count: number) => void} draw */
export function virtualRows(container, { row, head, most }, draw) {
  const space = elementAt(".space", container), scroll = { total: 0, count: 0, first: 0, set: /** @type {number | null} */ (null) };
  const below = () => Math.max(0, scroll.total - scroll.count);
  const scrollable = () => Math.max(1, space.offsetHeight - container.clientHeight);
  const render = () => draw(scroll.first, Math.min(scroll.count, scroll.total - scroll.first));

  /** @param {number} first */
  function moveTo(first) {
    scroll.first = Math.min(below(), Math.max(0, Math.round(first)));
    container.scrollTop = below() ? (scroll.first / below()) * scrollable() : 0;
    scroll.set = container.scrollTop;
    render();
  }
  container.addEventListener("scroll", () => {
    if (scroll.set !== null && Math.abs(container.scrollTop - scroll.set) < 1) return;
    scroll.set = null;
    scroll.first = Math.min(below(), Math.max(0, Math.round((container.scrollTop / scrollable()) * below())));
    render();
  });
  return {
    /** @param {number} total @param {number} shown */
    fill(total, shown) {
      scroll.total = total;
      scroll.count = Math.min(most(), total);
      container.style.height = `${head + row() * Math.max(1, scroll.count)}px`;
      space.style.height = `${Math.min(SPACE_MOST, head + row() * Math.max(1, total))}px`;
      if (shown >= 0) moveTo(shown - Math.floor(scroll.count / 2));
      else moveTo(0);
    },
    /** @param {number} at */
    show(at) {
      if (at < scroll.first || at >= scroll.first + scroll.count) moveTo(at - Math.floor(scroll.count / 2));
      else render();
    },
    first: () => scroll.first,
  };
}
