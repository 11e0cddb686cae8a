# SPDX-License-Identifier: Apache-2.0
"""The members of a finding in the report: which, how many losses and how fast, and how the mouse and links choose them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import wiretale
from checkout import CAPTURES
from one_queue import Flow, through_one_queue
from report_page import VIEW, Page

pytestmark = pytest.mark.xdist_group("report-members")

RATE, ROOM = 20e6, 60
FEW, MANY, CLIENTS = 4, 14, 5
PAPER_PX = 703  # A4 less margins of 12 mm, at 96 dots an inch
CLIENT = bytes((10, 1, 1))  # of the models' clients, whose last byte is a number


def moved(frame: bytes) -> bytes:
    """The packet of one of CLIENTS clients instead of one of MANY; ports still distinguish its flow."""
    for at in (26, 30):
        if frame[at : at + 3] == CLIENT:
            last = frame[at + 3] % CLIENTS + 1
            frame = frame[: at + 3] + bytes((last,)) + frame[at + 4 :]
    return frame


class Shared:
    """Flows through one queue, and their report."""

    def __init__(self, folder: Path, count: int, seconds: float) -> None:
        wire, self.flows = through_one_queue(count, RATE, ROOM, seconds)
        if count == MANY:
            wire.packets = [(time, moved(frame)) for time, frame in wire.packets]
        self.trace = wiretale.analyze(wire.write(folder / "wire.pcap"))
        self.path = self.trace.report(folder / "report.html")
        number = self.trace.findings.column("code").index("shared-queue") + 1
        self.members = [row["flow"] for row in self.trace.finding_flows if row["finding"] == number]

    def dropped(self, number: int) -> int:
        flow: Flow = self.flows[number]
        return flow.dropped


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Shared:
    return Shared(tmp_path_factory.mktemp("few"), FEW, 12.0)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Shared:
    return Shared(tmp_path_factory.mktemp("many"), MANY, 8.0)


@pytest.fixture(scope="module")
def tab_of_all(browser: Any) -> Iterator[Page]:
    opened = browser.new_page(viewport=VIEW)
    yield Page(opened)
    opened.close()


@pytest.fixture
def tab(tab_of_all: Page) -> Page:
    return tab_of_all.clear()


def number_of(shared: Shared, page: Page) -> int:
    """The number of the finding in the page's links."""
    script = "data.findings.findIndex(one => one.code === 'shared-queue') + 1"
    return int(page.page.evaluate(script))


def opened(page: Page, shared: Shared) -> Page:
    page.open(shared.path)
    page.page.evaluate(f"choose({{finding: {number_of(shared, page)}}})")
    page.until("!document.getElementById('members').hidden")
    return page


def pictures(page: Page) -> list[dict[str, Any]]:
    about = (
        "{flows: one.dataset.flows.split(' ').map(Number), label: one.getAttribute('aria-label'),"
        " ticks: one.querySelector('.loss').getAttribute('d').split('M').length - 1,"
        " chosen: one.getAttribute('aria-current') === 'true'}"
    )
    every = "[...document.querySelectorAll('#members-pictures .member')]"
    members: list[dict[str, Any]] = page.page.evaluate(f"{every}.map(one => ({about}))")
    return members


def test_each_member_has_its_losses_and_its_rate(tab: Page, few: Shared) -> None:
    drawn = pictures(opened(tab, few))
    assert [member["flows"] for member in drawn] == [[flow] for flow in few.members]
    series = few.trace.series.rows()
    for member in drawn:
        (flow,) = member["flows"]
        lost = re.search(r"([\d,]+) lost, at most ([\d.]+) ([kM])bit/s", member["label"])
        assert lost and int(lost[1]) == few.dropped(flow) and member["ticks"] > 0
        fastest = max(row["throughput_bps"] for row in series if row["flow"] == flow)
        peak = float(lost[2]) * {"k": 1e3, "M": 1e6}[lost[3]]
        assert 0.3 * fastest < peak <= 1.01 * fastest
    words = tab.page.inner_text("#members")
    assert f"{FEW} flows on one axis" in words and "each flow, same scale" in words and tab.complaints == []


def test_many_members_are_grouped_by_client(tab: Page, many: Shared) -> None:
    drawn = pictures(opened(tab, many))
    assert sorted(flow for member in drawn for flow in member["flows"]) == sorted(many.members)
    sources = many.trace.flows.column("source")
    assert len(drawn) <= CLIENTS < len(many.members)
    for member in drawn:
        assert len({sources[flow] for flow in member["flows"]}) == 1 and member["label"].startswith(
            sources[member["flows"][0]]
        )
        lost = re.search(r"([\d,]+) lost", member["label"])
        assert lost and int(lost[1].replace(",", "")) == sum(map(many.dropped, member["flows"]))
    assert "by client" in tab.page.inner_text("#members-note")


def test_the_mouse_chooses_a_member_and_back_undoes_it(tab: Page, few: Shared) -> None:
    opened(tab, few)
    finding = number_of(few, tab)
    flow = few.members[2]
    tab.page.click(f".member[data-flows='{flow}']")
    tab.until(f"document.body.dataset.flow === '{flow}'")
    assert f"flow={flow}" in tab.hash() and f"finding={finding}" in tab.hash()
    assert [member["flows"] for member in pictures(tab) if member["chosen"]] == [[flow]]
    tab.page.click("#next-member")
    tab.until(f"document.body.dataset.flow === '{few.members[3]}'")
    assert f"member 4 of {FEW}" in tab.page.inner_text("#members-at")
    tab.page.click("#next-member")
    tab.until(f"document.body.dataset.flow === '{few.members[0]}'")
    tab.page.click("#previous-member")
    tab.until(f"document.body.dataset.flow === '{few.members[3]}'")
    assert f"finding={finding}" in tab.hash()
    tab.page.go_back()
    tab.until(f"document.body.dataset.flow === '{few.members[0]}'")


def test_members_are_overlaid_by_their_button_and_with_ctrl(tab: Page, few: Shared) -> None:
    opened(tab, few)
    flows = "[...document.querySelectorAll('#with-list li')].map(one => Number(one.dataset.flow))"
    assert tab.page.inner_text("#overlay-members") == "overlay them"
    tab.page.click("#overlay-members")
    tab.until(f"{flows}.length === {FEW}")
    assert sorted(tab.page.evaluate(flows)) == sorted(few.members)
    assert f"finding={number_of(few, tab)}" in tab.hash()
    tab.page.click(f".member[data-flows='{few.members[2]}']", modifiers=["Control"])
    tab.until(f"{flows}.length === {FEW - 1}")
    assert few.members[2] not in tab.page.evaluate(flows) and tab.complaints == []


def test_eight_of_many_members_are_overlaid(tab: Page, many: Shared) -> None:
    opened(tab, many)
    assert tab.page.inner_text("#overlay-members") == "overlay 8 of them"
    tab.page.click("#overlay-members")
    tab.until("document.querySelectorAll('#with-list li').length === 8")


def test_a_link_shows_the_members(page: Page, tab: Page, few: Shared) -> None:
    opened(tab, few)
    page.visit(tab)
    page.until("!document.getElementById('members').hidden")
    assert len(pictures(page)) == FEW and page.complaints == []


def test_pictures_are_one_tab_stop(tab: Page, few: Shared) -> None:
    opened(tab, few)
    stops = "document.querySelectorAll('#members-pictures .member[tabindex=\"0\"]').length"
    assert tab.page.evaluate(stops) == 1
    tab.page.focus("#members-pictures .member")
    tab.page.keyboard.press("ArrowRight")
    assert tab.page.evaluate("document.activeElement.dataset.flows") == str(few.members[1])
    tab.page.keyboard.press("Enter")
    tab.until(f"document.body.dataset.flow === '{few.members[1]}'")


@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1440)])
def test_members_and_distributions_are_for_everybody(browser: Any, few: Shared, scheme: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = opened(Page(tab), few)
    page.page.evaluate("choose({toggled: ['distributions']})")
    page.until("document.querySelectorAll('#distribution-plots .cartesianlayer').length > 0")
    page.page.evaluate(files(axe).joinpath("axe.min.js").read_text("utf-8") + ";0")
    violations = page.page.evaluate("axe.run('main').then(r => r.violations.map(v => [v.impact, v.id]))")
    assert [violation for violation in violations if violation[0] in ("serious", "critical")] == []
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width
    tab.close()


def test_paper_has_members_and_distributions(tab: Page, few: Shared) -> None:
    opened(tab, few)
    tab.page.evaluate("choose({toggled: ['distributions']})")
    tab.page.set_viewport_size({"width": PAPER_PX, "height": 1000})
    tab.page.emulate_media(media="print")
    tab.until("document.documentElement.classList.contains('paper')")
    edges = "[...document.querySelectorAll('#distribution-plots svg, .member svg')].map(e => e.getBoundingClientRect().right)"
    tab.until(f"{edges}.length > {FEW} && Math.max(...{edges}) <= {PAPER_PX}")
    assert not tab.page.locator("#next-member").is_visible()


def test_findings_of_one_flow_have_no_members(tab: Page, few: Shared) -> None:
    opened(tab, few)
    flows = tab.page.evaluate("data.findings.map(finding => finding.flows.length)")
    single = [number for number, count in enumerate(flows, start=1) if count < 2]
    tab.page.evaluate(f"choose({{finding: {single[0]}}})")
    tab.until("document.getElementById('members').hidden")


@pytest.mark.parametrize("path", [path for path in CAPTURES if "fragments" in path.name], ids=lambda path: path.name)
def test_members_of_samples_are_drawn(tab: Page, path: Path, tmp_path: Path) -> None:
    trace = wiretale.analyze(path)
    tab.open(trace.report(tmp_path / "report.html"))
    numbers = tab.page.evaluate("data.findings.map((one, i) => one.flows.length > 1 ? i + 1 : 0).filter(Boolean)")
    assert numbers
    for number in numbers:
        tab.page.evaluate(f"choose({{finding: {number}}})")
        named = f"causeOf({number})?.main === {number} ? 'Cause ' : 'Finding {number}:'"
        tab.until(f"document.getElementById('members-title').textContent.startsWith({named})")
        assert pictures(tab)
    assert tab.complaints == []
