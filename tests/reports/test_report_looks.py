# SPDX-License-Identifier: Apache-2.0
"""Reports of different kinds as a reader sees them: on a desk in light and dark, on a phone and on paper.

Pictures are kept in build/screenshots, with a sheet of all of them in index.html, to be looked at. Only pages with
parts of a kind that no page before them had are shown in all modes and in a PDF, and only they go through axe-core; of
the other pages, every second one is shown on a phone, and the rest on paper.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wiretale
from checkout import ROOT, SAMPLES
from page_faults import faults, violations
from report_page import Page
from sample_sets import VARIED

pytestmark = pytest.mark.xdist_group("looks")  # one tab

PICTURES = ROOT / "build" / "screenshots"
DESK, PHONE, PAPER = {"width": 1440, "height": 900}, {"width": 390, "height": 844}, {"width": 703, "height": 1000}
MODES = {
    "light": (DESK, "light", "screen"),
    "dark": (DESK, "dark", "screen"),
    "phone": (PHONE, "light", "screen"),
    "paper": (PAPER, "light", "print"),
}
PAGES_MOST = 8
# Rules of axe-core for each mode: all, and those that depend on the theme or on the width.
RULES = {"light": [], "dark": ["color-contrast"], "phone": ["scrollable-region-focusable", "target-size"]}
# Whether timeline and plot, if there are any, have the width of their place, and the plot has the colors of the page.
DRAWN = """((plot, width, ink, timeline) =>
    (!timeline || !canvas.width || canvas.width === timeline.clientWidth) &&
    (!plot.clientWidth || (plot._fullLayout.width === width && plot._fullLayout.font.color === ink)))(
    document.getElementById('plot'), document.getElementById('stack').clientWidth,
    getComputedStyle(document.documentElement).getPropertyValue('--ink').trim(), document.getElementById('timeline'))"""
# Elements and classes of the parts that are visible.
KINDS = """[...document.querySelectorAll('body *')].filter((part) => !part.closest('.js-plotly-plot') && part.checkVisibility())
    .flatMap((part) => [part.tagName, ...part.classList])"""
# Series of which nothing is drawn although they have points in view, and marks that are cut by the edge of their panel.
HIDDEN = """(() => {
  const plot = document.getElementById('plot'), found = [];
  for (const node of plot.clientWidth ? plot.querySelectorAll('.scatterlayer .trace') : []) {
    const trace = node.__data__[0].trace, axis = plot._fullLayout[(trace.yaxis || 'y').replace('y', 'yaxis')];
    const top = plot.getBoundingClientRect().y + axis._offset, isInside = (y) => y >= axis.range[0] && y <= axis.range[1];
    if (!trace.y.some((y) => y !== null && isInside(axis.d2l(y)))) continue;
    const shapes = [...node.querySelectorAll('.js-line, .point')], marks = shapes.filter((shape) => shape.matches('.point'));
    if (!shapes.some((shape) => shape.getAttribute('d')?.length > 2)) found.push(`${trace.meta}: not drawn`);
    const boxes = marks.filter((mark) => mark.checkVisibility()).map((mark) => mark.getBoundingClientRect());
    if (boxes.some((box) => box.height && box.y < top - 1)) found.push(`${trace.meta}: above its panel`);
  }
  return found;
})()"""
# Of sample_pcaps/findings, those whose pages differ most from the samples'.
FINDINGS = (
    *("bufferbloat", "dns-unanswered", "jitter", "malformed", "not-understood"),
    *("scan", "slow-server", "time-unknown", "undecoded", "unfair-share", "wire-full"),
)
# Captures made by others, with what their pages must say, and what they must not claim.
OTHERS = {
    "empty": (r"The capture has no packets", r"in what was judged|No problem"),
    "arp-oobr": (r"not IP \(100% of packets\)", r"in what was judged|No problem|All traffic"),
    "status_code-1": (r"1 WLAN management or control frame", r"in what was judged|wlan-not-data"),
    "ieee802.11_htc": (r"One packet: nothing to draw over time", r"in what was judged|All traffic|Mbit/s"),
    "icmp6-rfc8335": (
        r"1 ICMPv6 flow; losses and delays can't be seen",
        r"in what was judged|No problem|Sequence",
    ),
    "rtp-seg-fault-2": (r"UDP has no sequence numbers", r"in what was judged|No problem"),
    "dnssec": (r"losses would not show", r"No problem|Sequence"),
    "08-sunrise-sunset-aes": (r"8 encrypted packets", r"No problem|encrypted=|Sequence"),
    "timestamp_invalid_micro": (r"35 min 47 s, 3 packets", r"2190 s"),
    "various_gre": (r"Payload so far", r"No problem|Sequence"),
}


class Tab:
    """One tab for all reports, and the kinds of parts that they had until now."""

    def __init__(self, tab: Any) -> None:
        self.tab = tab
        self.page = Page(tab)
        self.kinds: set[str] = set()
        self.modes: dict[str, tuple[str, ...]] = {}  # by capture, so that a second try shows what the first one did

    def show(self, size: dict[str, int], scheme: str, media: str) -> None:
        self.tab.set_viewport_size(size)
        self.tab.emulate_media(color_scheme=scheme, media=media)
        self.page.until("document.documentElement.className === 'paper'" if media == "print" else DRAWN)

    def open(self, name: str, html: Path) -> tuple[str, ...]:
        """Opens the report of a capture; returns the modes to show it in: all if it has parts of a new kind."""
        self.tab.set_viewport_size(DESK)
        self.tab.emulate_media(color_scheme="light", media="screen")
        self.page.complaints.clear()
        self.page.requests.clear()
        self.page.open(html)
        assert self.page.requests == [html.as_uri()]
        kinds = set(self.tab.evaluate(KINDS)) - self.kinds
        self.kinds |= kinds
        few = ("light", "paper" if len(self.modes) % 2 else "phone")
        return self.modes.setdefault(name, tuple(MODES) if kinds else few)

    def keep(self, name: str) -> None:
        self.tab.screenshot(path=PICTURES / f"{name}.jpg", type="jpeg", quality=70, full_page=True)


@pytest.fixture(scope="module")
def tab(browser: Any) -> Iterator[Tab]:
    PICTURES.mkdir(parents=True, exist_ok=True)
    opened = browser.new_page(viewport=DESK)
    opened.set_default_timeout(90_000)
    yield Tab(opened)
    opened.close()
    figures = [
        f'<figure><img src="{path.name}" loading="lazy" width="360"><figcaption>{path.stem}</figcaption></figure>'
        for path in sorted(PICTURES.glob("*.jpg"))
    ]
    style = "body{display:flex;flex-wrap:wrap;gap:16px;font:12px sans-serif}figure{margin:0}"
    (PICTURES / "index.html").write_text(f"<!doctype html><style>{style}</style>{''.join(figures)}")


def check(tab: Tab, capture: Path, html: Path) -> Page:
    """Shows the report of a capture in all modes, or in two."""
    modes = tab.open(capture.name, wiretale.analyze(capture).report(html, frames=False))  # no frame is chosen
    problems: dict[str, Any] = {}
    new = len(modes) == len(MODES)
    for name in modes:
        tab.show(*MODES[name])
        problems[name] = faults(tab.page)
        if name == "paper":
            continue
        if hidden := tab.tab.evaluate(HIDDEN):
            problems[f"hidden {name}"] = hidden
        if new:
            problems[f"axe {name}"] = violations(tab.page, RULES[name])
        tab.keep(f"{capture.name}-{name}")
    if new:
        tab.tab.emulate_media(media="screen")
        pdf = tab.tab.pdf(format="A4", path=PICTURES / f"{capture.name}.pdf")
        problems["pages"] = max(0, len(re.findall(rb"/Type\s*/Page\b", pdf)) - PAGES_MOST)
    assert {name: problem for name, problem in problems.items() if problem} == {}
    return tab.page


@pytest.mark.parametrize(
    "capture",
    [*VARIED, *(SAMPLES / "findings" / f"{name}.pcap.gz" for name in FINDINGS)],
    ids=lambda path: path.name,
)
def test_a_report_is_sound_wherever_it_is_read(tab: Tab, capture: Path, tmp_path: Path) -> None:
    page = check(tab, capture, tmp_path / "report.html")
    assert capture not in VARIED or page.points() > 0


@pytest.mark.parametrize("name", OTHERS)
def test_reports_of_other_kinds_of_traffic_make_sense(tab: Tab, real_captures: Path, name: str, tmp_path: Path) -> None:
    (capture,) = (real_captures / "tcpdump-tests").glob(f"{name}.pcap*")
    page = check(tab, capture, tmp_path / "report.html")
    page.page.evaluate("document.querySelectorAll('.judged').forEach((line) => line.toggleAttribute('open', true))")
    text = page.page.inner_text("body")
    expected, unsaid = OTHERS[name]
    assert re.search(expected, text) and not re.search(unsaid, text), text
