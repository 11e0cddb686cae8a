# SPDX-License-Identifier: Apache-2.0
"""Faults of a page that a reader would see at once: texts that cover each other or are cut, empty sections, sideways scrolling,
and the violations that axe-core finds."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import pytest

from report_page import Page

# Each line of text that is visible, as [number of the text, layer, text, left, top, right, bottom], cut to the boxes that
# scroll or hide it. The dock and what sticks in it are layers: they have a background, and cover what scrolls below them. Texts
# over a plot have a background of their own, and may cover its lines, but no other text.
TEXTS = """() => {
  let number = 0;
  const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const hides = (style) => style.overflowX !== 'visible' || style.overflowY !== 'visible';
  for (let node; (node = walker.nextNode());) {
    const own = node.parentElement, text = node.textContent.trim(), range = document.createRange();
    if (!text || own.closest('script, style, .unseen, option, select')) continue;
    if (!own.checkVisibility({visibilityProperty: true, opacityProperty: true})) continue;
    number++;
    const layer = own.closest('.docked #frame-bytes, .docked .frame > .tabs, .docked')?.id ?? 'page';
    range.selectNodeContents(node);
    for (const line of range.getClientRects()) {
      const box = [line.left, line.top, line.right, line.bottom];
      for (let outer = own; outer && outer !== document.body; outer = outer.parentElement) {
        if (outer instanceof SVGElement || !hides(getComputedStyle(outer))) continue;
        const edge = outer.getBoundingClientRect();
        [box[0], box[1]] = [Math.max(box[0], edge.left), Math.max(box[1], edge.top)];
        [box[2], box[3]] = [Math.min(box[2], edge.right), Math.min(box[3], edge.bottom)];
      }
      if (box[2] - box[0] > 1 && box[3] - box[1] > 1) found.push([number, layer, text.slice(0, 60), ...box]);
    }
  }
  return found;
}"""
# Boxes whose content is wider than they are, although they neither scroll nor end in an ellipsis.
CUT = """() => [...document.querySelectorAll('main *')].filter((one) => {
  if (!one.checkVisibility() || one.closest('svg, .unseen, .js-plotly-plot, .split, .mini, pre')) return false;
  const style = getComputedStyle(one);
  return style.overflowX !== 'visible' && style.textOverflow !== 'ellipsis' && one.scrollWidth > one.clientWidth + 1;
}).map((one) => `${one.className || one.id || one.tagName}: ${one.scrollWidth} of ${one.clientWidth} px`)"""
# Sections with nothing but their headings and controls.
EMPTY = """() => [...document.querySelectorAll('main section')].filter((section) => {
  if (!section.checkVisibility()) return false;
  const kept = section.cloneNode(true);
  for (const part of kept.querySelectorAll('h2, h3, .tools, thead, [hidden]')) part.remove();
  return !kept.textContent.trim() && !kept.querySelector('svg, .bar');
}).map((section) => section.id || section.textContent.trim().slice(0, 40))"""
# Hides what repeats: the third and each further child of a parent that is as two before it, but for texts and numbers.
HIDE = """() => {
  const kinds = new Map();
  const ownKind = (one) => [one.tagName, !one.textContent.trim(), ...[...one.attributes].map(({ name, value }) =>
    /^(class|role|tabindex|style|type|aria-.*)$/.test(name) ? name + value.replace(/[\\d.]+/g, 0) : name)];
  const kindOf = (one) => {
    if (!kinds.has(one)) kinds.set(one, `${ownKind(one)}(${[...one.children].map(kindOf)})`);
    return kinds.get(one);
  };
  for (const parent of document.body.querySelectorAll('*')) {
    const times = {};
    for (const child of parent.children) {
      const kind = kindOf(child);
      times[kind] = (times[kind] ?? 0) + 1;
      child.toggleAttribute('data-repeated', times[kind] > 2);
    }
  }
  window.hiding ??= new CSSStyleSheet();
  hiding.replaceSync('[data-repeated] { visibility: hidden !important }');
  document.adoptedStyleSheets = [...document.adoptedStyleSheets.filter((sheet) => sheet !== hiding), hiding];
}"""
SHOW = """() => {
  hiding.replaceSync('');
  document.querySelectorAll('[data-repeated]').forEach((one) => one.removeAttribute('data-repeated'));
}"""
TOUCH_PX = 2.5  # lines of text that follow each other closely overlap by less


def covered(page: Page) -> list[tuple[str, str]]:
    """Returns the pairs of texts that cover each other."""
    texts = sorted(page.page.evaluate(TEXTS), key=lambda row: float(row[4]))
    pairs = []
    for place, (number, layer, text, *box) in enumerate(texts):
        for other_number, other_layer, other, *other_box in texts[place + 1 :]:
            if other_box[1] > box[3] - TOUCH_PX:
                break
            wide, high = (min(box[side + 2], other_box[side + 2]) - max(box[side], other_box[side]) for side in (0, 1))
            if (
                number != other_number and layer == other_layer and min(wide, high) > TOUCH_PX
            ):  # the end of a text that is cut has an ellipsis over it
                pairs.append((text, other))
    return pairs


def faults(page: Page) -> dict[str, Any]:
    """Returns the faults of the page as it is shown now; empty if there are none."""
    wide = page.page.evaluate("document.documentElement.scrollWidth - innerWidth")
    counts = {
        "sideways": wide if wide > 0 else 0,
        "covered": covered(page),
        "cut": page.page.evaluate(CUT),
        "empty": page.page.evaluate(EMPTY),
        "messages": page.complaints,
    }
    return {name: value for name, value in counts.items() if value}


def violations(page: Page, rules: Sequence[str] = ()) -> list[Any]:
    """Returns the violations of accessibility rules, or of all, that axe-core finds: impact, rule and elements. Of rows that are
    alike but for their texts, it looks at two: it takes some milliseconds for the contrast of each text."""
    axe = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    if not page.page.evaluate("!!window.axe"):
        page.page.evaluate(files(axe).joinpath("axe.min.js").read_text("utf-8") + ";0")
    page.page.evaluate(HIDE)
    rows: list[Any] = page.page.evaluate(
        "rules => axe.run(document, {resultTypes: ['violations'], ...(rules.length ? {runOnly: rules} : {})})"
        ".then(r => r.violations.map(v => [v.impact, v.id, v.nodes.map(n => n.html.slice(0, 120))]))",
        list(rules),
    )
    page.page.evaluate(SHOW)
    return rows
