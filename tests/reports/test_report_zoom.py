# SPDX-License-Identifier: Apache-2.0
"""The view of a flow under a real mouse and keys: zooms, moves, Back, links, legends."""

from __future__ import annotations

from pathlib import Path

import pytest

import wiretale
from checkout import SampleReport
from plain_wire import Connection, Wire, sack
from report_page import Page

pytestmark = pytest.mark.xdist_group("report-zoom")


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Steady data for 20 s, with a segment lost at 5 s and another at 15 s."""
    talk = Connection(Wire()).open()
    for number in range(2000):
        if number in (500, 1500):
            for late in range(1, 4):
                talk.ack(
                    10 * (number + late) + 9,
                    1000 * number,
                    options=sack((1000 * (number + 1), 1000 * (number + 1 + late))),
                )
            talk.data(10 * number + 41, 1000 * number, 1000)
        else:
            talk.data(100 + 10 * number, 1000 * number, 1000)
    path = tmp_path_factory.mktemp("lossy") / "lossy.pcap"
    return talk.wire.write(path)


def test_a_zoom_ranges_over_the_points_in_view(page: Page, lossy: Path, tmp_path: Path) -> None:
    page.open(wiretale.analyze(lossy).report(tmp_path / "report.html"), "#flow=0&t=10-10.0501")
    drawn = [point for point in page.drawn() if point.trace == "data"]
    frames = [point.frame for point in drawn]
    assert frames == sorted(frames) and 5 <= len(set(frames)) <= 6 and all(frames.count(frame) == 2 for frame in frames)
    top, bottom = (page.pixel("yaxis", value) for value in reversed(page.range("yaxis")))
    share = (max(point.y for point in drawn) - min(point.y for point in drawn)) / (bottom - top)
    assert share > 0.8  # of the panel's height


def test_a_search_of_flows_leaves_the_crosshair_and_the_count_of_packets(
    page: Page, lossy: Path, tmp_path: Path
) -> None:
    page.open(wiretale.analyze(lossy).report(tmp_path / "report.html"), "#flow=0&t=10-10.0501")
    before = page.page.inner_text("#view-note")
    page.page.fill("#find", "tcp")
    page.until("location.hash.includes('find=')")
    page.page.click("#flows thead [data-key='lasted'] button")  # another order of the flows
    page.page.click(".panel-legend [data-series='window']")
    page.until("document.querySelector('.panel-legend [data-series=window]').getAttribute('aria-pressed') === 'false'")
    assert "packets, every one drawn" in before and page.page.inner_text("#view-note") == before
    point = next(point for point in page.drawn() if point.trace == "data")
    assert f"frame {point.frame:,}" in page.hover(point)


def test_choices_in_the_legend_survive_a_zoom_and_another_flow(page: Page, sample_report: SampleReport) -> None:
    page.open(sample_report("tcp_losses.pcap")).whole_flow()
    visible = "document.getElementById('plot')._fullData.find(t => t.meta === '{}').visible === {}"
    assert page.page.evaluate(visible.format("window", "true"))
    for name in ("window", "ack"):
        button = page.page.locator(f".panel-legend [data-series='{name}']")
        button.click()
        page.until(visible.format(name, "'legendonly'"))
        assert button.get_attribute("aria-pressed") == "false"
        assert "line-through" in button.evaluate("button => getComputedStyle(button).textDecoration")
    page.drawn()
    low, high = page.range("yaxis")
    page.drag(
        (page.pixel("xaxis", 0.05), page.pixel("yaxis", 0.9 * high)),
        (page.pixel("xaxis", 0.3), page.pixel("yaxis", low)),
    )
    for name in ("window", "ack"):
        assert page.page.evaluate(visible.format(name, "'legendonly'"))
        assert not [point for point in page.drawn() if point.trace == name]
    page.page.locator(".panel-legend [data-series='ack']").click()
    page.until(visible.format("ack", "true"))
    assert [point for point in page.drawn() if point.trace == "ack"]


def test_an_edited_link_and_a_double_click_change_the_view(page: Page, samples: Path, tmp_path: Path) -> None:
    page.open(wiretale.analyze(samples / "vlan_ipv6.pcap").report(tmp_path / "report.html")).whole_flow()
    first = page.hash()
    page.page.evaluate("location.hash = '#flow=3&t=0.01-0.02'")
    page.until("document.body.dataset.flow === '3'")
    assert page.range() == pytest.approx([0.01, 0.02]) and "Flow 3:" in page.page.inner_text("#h-flow")
    page.drawn()
    page.page.mouse.dblclick(page.pixel("xaxis", 0.015), page.pixel("yaxis", sum(page.range("yaxis")) / 2))
    page.until("location.hash === '#flow=3'")
    assert page.range()[1] - page.range()[0] != pytest.approx(0.01)
    page.page.go_back()
    page.until("location.hash === '#flow=3&t=0.01-0.02'")
    page.page.go_back()
    page.until(f"location.hash === '{first}'")
    page.page.evaluate("location.hash = '#flow=77'")
    page.until("!document.getElementById('missing').hidden")
    assert "Flow 77" in page.page.inner_text("#missing")
    assert page.complaints == []


@pytest.mark.parametrize("fragment", ["#flow=%", "#flow=0&t=%zz"])
def test_a_link_that_was_cut_still_opens_the_page(page: Page, sample_report: SampleReport, fragment: str) -> None:
    page.open(sample_report("tcp_losses.pcap"), fragment)
    assert page.complaints == [] and page.points()
    notice = page.page.inner_text("#missing") if page.page.is_visible("#missing") else ""
    assert notice.startswith("Flow % of the link") == (fragment == "#flow=%")


def test_back_undoes_the_choice_of_a_flow_after_keys(page: Page, samples: Path, tmp_path: Path) -> None:
    page.open(wiretale.analyze(samples / "vlan_ipv6.pcap").report(tmp_path / "report.html")).whole_flow()
    page.page.focus("#plot")
    page.page.keyboard.press("+")
    page.until("location.hash.includes('&t=')")
    zoomed = page.hash()
    page.page.focus("#flows tbody tr[tabindex='0']")
    page.page.keyboard.press("ArrowDown")
    page.page.keyboard.press("Enter")
    page.until("!location.hash.includes('&t=')")
    page.page.go_back()
    page.until(f"location.hash === '{zoomed}'")


def test_shift_and_drag_moves_the_view(page: Page, sample_report: SampleReport) -> None:
    page.open(sample_report("tcp_losses.pcap")).whole_flow()
    page.drawn()
    (from_, to), width = page.range(), page.range()[1] - page.range()[0]
    pixel = width / (page.pixel("xaxis", to) - page.pixel("xaxis", from_))
    for step in (1, 2):
        middle, top = page.pixel("xaxis", sum(page.range()) / 2), page.pixel("yaxis", sum(page.range("yaxis")) / 2)
        page.page.keyboard.down("Shift")
        page.drag((middle, top), (middle - 100, top))
        page.page.keyboard.up("Shift")
        assert page.range() == pytest.approx([from_ + 100 * step * pixel, to + 100 * step * pixel], abs=3 * pixel)


def test_the_wheel_with_ctrl_zooms_at_the_pointer_and_is_one_step(page: Page, sample_report: SampleReport) -> None:
    page.open(sample_report("tcp_losses.pcap")).whole_flow()
    page.drawn()
    full, first = page.range(), page.hash()
    at = page.pixel("xaxis", 0.2), page.pixel("yaxis", 100_000)
    page.page.mouse.move(*at)
    page.page.mouse.wheel(0, -200)
    page.page.wait_for_timeout(300)
    assert page.range() == full  # without Ctrl, the page scrolls
    page.drawn()
    at = page.pixel("xaxis", 0.2), page.pixel("yaxis", 100_000)
    page.page.mouse.move(*at)
    page.page.keyboard.down("Control")
    for _ in range(3):
        page.page.mouse.wheel(0, -200)
        page.page.wait_for_timeout(150)
    page.page.keyboard.up("Control")
    shown = "document.getElementById('plot')._fullLayout.xaxis.range"
    page.until(f"location.hash.includes('&t=') && {shown}[1] - {shown}[0] < {0.6 * (full[1] - full[0])}")
    assert page.pixel("xaxis", 0.2) == pytest.approx(at[0], abs=2)
    page.page.go_back()
    page.until(f"location.hash === '{first}'")


def test_a_double_click_goes_back_a_step(page: Page, sample_report: SampleReport) -> None:
    page.open(sample_report("tcp_losses.pcap")).whole_flow()
    page.drawn()
    seen = [page.hash()]
    for left, right in ((0.05, 0.3), (0.1, 0.2)):
        low, high = page.range("yaxis")
        page.drag(
            (page.pixel("xaxis", left), page.pixel("yaxis", low)),
            (page.pixel("xaxis", right), page.pixel("yaxis", high)),
        )
        seen.append(page.hash())
    for before in (seen[1], seen[0]):
        page.page.wait_for_timeout(500)
        page.page.mouse.dblclick(page.pixel("xaxis", 0.15), page.pixel("yaxis", sum(page.range("yaxis")) / 2))
        page.until(f"location.hash === '{before}'", 5)


def test_a_zoom_draws_once(page: Page, sample_report: SampleReport) -> None:
    page.open(sample_report("tcp_losses.pcap")).whole_flow()
    page.drawn()
    page.page.evaluate(
        "window.drawings = 0; const react = Plotly.react;"
        "for (const name of ['react', 'relayout', 'redraw', 'restyle', 'update', 'newPlot'])"
        " { const own = Plotly[name]; Plotly[name] = (...given) => { window.drawings++; return own(...given); }; } 0"
    )
    page.drag(
        (page.pixel("xaxis", 0.1), page.pixel("yaxis", 200_000)),
        (page.pixel("xaxis", 0.3), page.pixel("yaxis", 50_000)),
    )
    page.page.wait_for_timeout(500)
    assert page.page.evaluate("window.drawings") == 1


def test_the_deepest_zoom_by_keys_is_a_link_that_opens(page: Page, sample_report: SampleReport) -> None:
    path = sample_report("tcp_losses.pcap")
    page.open(path).whole_flow()
    page.page.focus("#plot")
    for _ in range(45):
        page.page.keyboard.press("+")
    page.page.wait_for_timeout(500)
    deepest, fragment = page.range(), page.hash()
    page.page.goto("about:blank")
    page.open(path, fragment)
    assert page.range() == pytest.approx(deepest, abs=2e-9) and deepest[1] - deepest[0] < 1e-6


def test_a_copy_button_has_its_words_again_after_two_clicks(page: Page, sample_report: SampleReport) -> None:
    page.open(sample_report("tcp_losses.pcap")).whole_flow()
    page.page.dblclick("#copy-flow")
    page.until("document.getElementById('copy-flow').textContent === 'copied'", 5)
    page.until("document.getElementById('copy-flow').textContent === 'copy filter'", 5)
