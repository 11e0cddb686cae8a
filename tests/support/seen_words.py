# SPDX-License-Identifier: Apache-2.0
"""The words that a reader sees in the window of a page."""

from __future__ import annotations

import re
from itertools import pairwise

from report_page import Page

UNITS = frozenset(["ns", "µs", "ms", "s", "min", "h", "B", "kB", "MB", "GB", "bit/s", "kbit/s", "Mbit/s", "Gbit/s"])
# Texts in the window, but those that are folded, hidden or cut off.
TEXTS = """() => {
  const seen = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const range = document.createRange(), places = new Map();
  const edges = (element) => {
    if (!element || element === document.documentElement) return [0, 0, innerWidth, innerHeight];
    if (places.has(element)) return places.get(element);
    const [left, top, right, bottom] = edges(element.parentElement), box = element.getBoundingClientRect();
    const clips = getComputedStyle(element).overflow !== 'visible';
    const place = clips
      ? [Math.max(left, box.left), Math.max(top, box.top), Math.min(right, box.right), Math.min(bottom, box.bottom)]
      : [left, top, right, bottom];
    places.set(element, place);
    return place;
  };
  for (let node; (node = walker.nextNode());) {
    const parent = node.parentElement;
    if (!parent.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    const [left, top, right, bottom] = edges(parent);
    for (const word of node.data.matchAll(/\\S+/g)) {
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const box = range.getBoundingClientRect(), x = (box.left + box.right) / 2, y = (box.top + box.bottom) / 2;
      if (box.width && x > left && x < right && y > top && y < bottom) seen.push(word[0]);
    }
  }
  return seen;
}"""


def is_word(before: str, text: str) -> bool:
    """Whether a text has letters and no digit, as numbers and addresses have, and is no unit of a number before it."""
    is_unit = text.strip(".,;)·") in UNITS and re.search(r"\d$", before) is not None
    return re.search(r"[^\W\d_]", text) is not None and re.search(r"\d", text) is None and not is_unit


def seen_words(page: Page) -> list[str]:
    """The words in the window."""
    return [text for before, text in pairwise(["", *page.page.evaluate(TEXTS)]) if is_word(before, text)]
