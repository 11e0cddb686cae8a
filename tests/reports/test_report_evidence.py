# SPDX-License-Identifier: Apache-2.0
"""Show of a finding under a real mouse: flow, range and mark change together; Back undoes it, and its link repeats it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator

import wiretale
from checkout import SAMPLES, SampleReport
from report_makers import many_flows
from report_page import VIEW, Page

pytestmark = pytest.mark.xdist_group("report-mouse")

EXAMPLES = [SAMPLES / "findings" / f"{code}.pcap.gz" for code in ("dns-slow", "tls-handshake-slow", "microburst")]
#: samples whose findings have different scopes: capture, flow, direction, several flows, one frame, none
SHOWN = [
    *(SAMPLES / f"{name}.pcap" for name in ("damaged", "ip_fragments", "mirror_port", "reordering", "zero_window")),
    *(SAMPLES / f"{name}.pcapng" for name in ("tcp_blocks", "two_interfaces")),
]
NS = 1e-9
#: flow, range and mark that the page shows, and the sentence beside them
VIEWED = """(() => {
  const plot = document.getElementById('plot'), shapes = plot.hidden ? [] : plot._fullLayout.shapes;
  const band = shapes.find((shape) => shape.name === 'evidence');
  return {
    flow: Number(document.body.dataset.flow), range: plot.hidden ? null : plot._fullLayout.xaxis.range,
    band: band ? [band.x0, band.x1] : null, shown: document.getElementById('shown').textContent,
    hash: location.hash, top: document.getElementById('flow-view').getBoundingClientRect().top,
    pixels: [...plot.querySelectorAll('.shapelayer path')].map((path) => path.getBoundingClientRect().toJSON()),
  };
})()"""


def viewed(page: Page) -> dict[str, Any]:
    view: dict[str, Any] = page.page.evaluate(VIEWED)
    return view


def findings_of(page: Page) -> list[dict[str, Any]]:
    findings: list[dict[str, Any]] = page.page.evaluate("data.findings")
    return findings


def shown_text(number: int) -> str:
    """Whether the mark is named: a cause by its place and title, another finding by its number and sentence."""
    named = f"causeOf({number})?.main === {number} ? 'Cause ' : 'Finding {number}:'"
    return f"document.getElementById('shown').textContent.startsWith({named})"


def show(page: Page, number: int) -> None:
    """Clicks the button of a finding with the mouse; one that the page does not list, it shows by its link."""
    button = page.page.locator(f"button[data-show='{number}']:visible").first
    if button.count():
        button.scroll_into_view_if_needed()
        box = button.bounding_box()
        page.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    else:
        page.page.evaluate(f"location.hash = '#finding={number}'")
    page.until(f"{shown_text(number)} && location.hash.split(/[#&]/).includes('finding={number}')")


def data_numbers(finding: Locator) -> list[str]:
    """The numbers of the findings of a cause."""
    return (finding.get_attribute("data-numbers") or "").split()


def assert_shows(page: Page, finding: dict[str, Any], number: int) -> dict[str, Any]:
    """The plot of the finding's flow has the evidence in its range, marked, and is in the window."""
    now = viewed(page)
    assert finding["cited_flow"] in (None, now["flow"]) and f"finding={number}" in now["hash"]
    title = page.page.evaluate(f"causeOf({number})?.main === {number} ? causeOf({number}).title : ''")
    assert now["shown"].endswith(f": {title or finding['sentence']}")
    assert abs(now["top"]) < VIEW["height"] / 2
    (left, right), (start, end), to = now["range"], now["band"], finding["to"] or finding["from"]
    assert left - NS <= start <= finding["from"] + NS and to - NS <= end and to <= right + NS
    assert finding["whole"] or end - start < right - left
    assert now["pixels"] and all(
        rectangle["height"] > 0 and 0 <= rectangle["left"] <= VIEW["width"] for rectangle in now["pixels"]
    )
    return now


@pytest.mark.parametrize("path", [*SHOWN, *EXAMPLES], ids=lambda path: path.name)
def test_show_of_every_finding(path: Path, page: Page, tmp_path: Path) -> None:
    page.open(wiretale.analyze(path).report(tmp_path / "report.html"), "#flow=0")
    findings, before = findings_of(page), viewed(page)
    numbers = [int(number) for entry in page.page.locator(".finding").all() for number in data_numbers(entry)]
    assert sorted(numbers) == list(range(1, len(findings) + 1))
    timed = [number for number, entry in enumerate(findings, 1) if entry["from"] is not None]
    assert len([entry for entry in findings if entry["scope"] != "capture" and entry["from"] is None]) == 0
    for number in timed:
        show(page, number)
        after = assert_shows(page, findings[number - 1], number)
        page.page.go_back()
        page.until(f"location.hash === '{before['hash']}'")
        page.until("document.getElementById('shown').hidden" if not before["shown"] else "true")
        back = viewed(page)
        assert (back["flow"], back["range"], back["band"]) == (before["flow"], before["range"], before["band"])
        page.page.go_forward()
        page.until(f"location.hash === '{after['hash']}'")
        before = after
    if timed:  # a page opens at its last choice as any link does
        page.page.reload()
        page.until("document.body.dataset.ready")
        again = assert_shows(page, findings[timed[-1] - 1], timed[-1])
        assert {name: again[name] for name in ("flow", "range", "band")} == {
            name: before[name] for name in ("flow", "range", "band")
        }
    assert page.complaints == []


def test_a_stall_is_shown_between_its_frames(page: Page, samples: Path, tmp_path: Path) -> None:
    trace = wiretale.analyze(samples / "go_back_n.pcap")
    page.open(trace.report(tmp_path / "report.html"))
    number = 1 + [entry["code"] for entry in findings_of(page)].index("timeout-stalls")
    show(page, number)
    times = {row["frame"]: row["time_ns"] for row in trace.packets([0]).rows()}
    base = int(page.page.evaluate("data.base"))
    start, end = viewed(page)["band"]
    assert start == pytest.approx((times[54] - base) * NS, abs=NS) and end == pytest.approx(
        (times[59] - base) * NS, abs=NS
    )
    assert page.page.get_attribute(f"button[data-show='{number}']", "title").startswith("Show 0.")


def test_frames_of_the_evidence_are_marked(page: Page, samples: Path, tmp_path: Path) -> None:
    trace = wiretale.analyze(samples / "go_back_n.pcap")
    page.open(trace.report(tmp_path / "report.html"))
    number = 1 + [entry["code"] for entry in findings_of(page)].index("spurious")
    show(page, number)
    shapes = page.page.evaluate("document.getElementById('plot')._fullLayout.shapes.map(({name, x0}) => [name, x0])")
    base, times = (
        int(page.page.evaluate("data.base")),
        {row["frame"]: row["time_ns"] for row in trace.packets([0]).rows()},
    )
    marks = sorted(x0 for name, x0 in shapes if name == "cited")
    assert marks == pytest.approx([(times[frame] - base) * NS for frame in (59, 64, 65)], abs=NS)


def test_n_and_p_go_through_the_findings(page: Page, sample_report: SampleReport) -> None:
    page.open(sample_report("tcp_losses.pcap"), "#flow=0")
    findings = findings_of(page)
    for key, number in (("n", 1), ("n", 2), ("n", 3), ("p", 2)):
        page.page.keyboard.press(key)
        page.until(f"{shown_text(number)} && location.hash.split(/[#&]/).includes('finding={number}')")
        assert_shows(page, findings[number - 1], number)
    page.page.go_back()
    page.until("choice.finding === 3")
    page.page.focus("#find")
    page.page.keyboard.type("np")
    assert page.page.evaluate("choice.finding") == 3 and page.page.input_value("#find") == "np"


def test_the_page_opens_at_the_evidence_of_the_first_finding(page: Page, sample_report: SampleReport) -> None:
    """With the mark, the frame and a link that repeats it; a button shows the whole flow, and Back returns."""
    page.open(sample_report("go_back_n.pcap"))
    first = findings_of(page)[0]
    opened = viewed(page)
    lasted = page.page.evaluate("taken.extent")
    assert page.page.evaluate("scrollY") == 0 and f"frame={first['frames'][0]}" in opened["hash"]
    assert opened["flow"] == first["cited_flow"] and opened["shown"].startswith("Cause 1: ")
    assert opened["range"] == lasted  # its cause has several spans
    show(page, 1)
    opened = viewed(page)
    assert lasted[0] <= opened["range"][0] < opened["band"][0] and opened["band"][1] < opened["range"][1] <= lasted[1]
    page.page.locator("#whole-flow").click()
    page.until("choice.range === null")
    view = viewed(page)
    assert view["range"] == lasted and view["band"] == opened["band"] and "finding=1" in view["hash"]
    page.page.go_back()
    page.until(f"location.hash === '{opened['hash']}'")
    assert viewed(page)["range"] == opened["range"]


def test_a_link_to_a_finding_alone_shows_it(page: Page, sample_report: SampleReport) -> None:
    path = sample_report("zero_window.pcap")
    page.open(path, "#finding=2")
    assert_shows(page, findings_of(page)[1], 2)
    page.page.evaluate("location.hash = '#flow=0&finding=999'")
    page.until("document.getElementById('shown').hidden")
    assert viewed(page)["band"] is None and viewed(page)["flow"] == 0


def test_another_flow_has_no_mark(page: Page, sample_report: SampleReport) -> None:
    page.open(sample_report("zero_window.pcap"))
    show(page, 1)
    other = 1 - viewed(page)["flow"]
    page.page.click(f"tr[data-flow='{other}']")
    page.until(f"document.body.dataset.flow === '{other}'")
    now = viewed(page)
    assert now["band"] is None and now["shown"] == "" and "finding" not in now["hash"]


def test_flows_of_findings_have_their_packets_in_the_page(page: Page, tmp_path: Path) -> None:
    trace = wiretale.analyze(many_flows(tmp_path / "many.pcap"), SAMPLES / "tcp_losses.pcap")
    page.open(trace.report(tmp_path / "report.html"))
    cited = {entry["cited_flow"] for entry in findings_of(page)[:10] if entry["cited_flow"] is not None}
    assert cited <= set(page.page.evaluate("data.packets.flows"))


def test_a_flow_without_its_packets_shows_its_series_and_the_command(
    page: Page, samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wiretale.reports.html.analyze.PACKETS_MOST", 1)
    page.open(wiretale.analyze(samples / "zero_window.pcap").report(tmp_path / "report.html"))
    findings, flows = findings_of(page), page.page.evaluate("data.packets.flows")
    number = next(number for number, entry in enumerate(findings, 1) if entry["cited_flow"] not in flows)
    show(page, number)
    assert_shows(page, findings[number - 1], number)
    assert "wiretale analyze" in page.page.inner_text("#again-command")
    assert page.page.evaluate("document.getElementById('plot').data.some((trace) => trace.meta === 'throughput0')")
