// @ts-check
// Rows of which only those in view exist, so that a list of a million scrolls like one of twenty.
//
// A tall empty element gives the scroll bar; what is drawn sticks to the top of the view and is drawn anew for each position.

const SPACE_MOST = 8e6; // px; browsers limit the height of elements, so that a longer list scrolls by a share

// Makes the rows of a scrolled container: `draw(first, count)` draws `count` rows from `first` on, each `row()` px high, at most
// `most`, below a head of `head` px. Returns functions that set the number of rows and bring a row into view.
export function virtualRows(container, { row, head, most }, draw) {
  const space = container.querySelector(".space"), view = { total: 0, count: 0, first: 0, set: null };
  const below = () => Math.max(0, view.total - view.count);
  const scrollable = () => Math.max(1, space.offsetHeight - container.clientHeight);
  const render = () => draw(view.first, Math.min(view.count, view.total - view.first));

  function moveTo(first) {
    view.first = Math.min(below(), Math.max(0, Math.round(first)));
    container.scrollTop = below() ? (view.first / below()) * scrollable() : 0;
    view.set = container.scrollTop;
    render();
  }
  container.addEventListener("scroll", () => {
    if (view.set !== null && Math.abs(container.scrollTop - view.set) < 1) return;
    view.set = null;
    view.first = Math.min(below(), Math.max(0, Math.round((container.scrollTop / scrollable()) * below())));
    render();
  });
  return {
    fill(total, shown) {
      view.total = total;
      view.count = Math.min(most, total);
      container.style.height = `${head + row() * Math.max(1, view.count)}px`;
      space.style.height = `${Math.min(SPACE_MOST, head + row() * Math.max(1, total))}px`;
      if (shown >= 0) moveTo(shown - Math.floor(view.count / 2));
      else moveTo(0);
    },
    show(at) {
      if (at < view.first || at >= view.first + view.count) moveTo(at - Math.floor(view.count / 2));
      else render();
    },
    first: () => view.first,
  };
}
