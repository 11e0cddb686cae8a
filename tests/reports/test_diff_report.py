# SPDX-License-Identifier: Apache-2.0
"""The page of `wiretale diff`: both runs are drawn as their packets are, from captures and tables; under a real mouse."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scapy.all import wrpcap

import wiretale
from checkout import SAMPLES
from checkout import Run as Runner
from crafted import NEIGHBOR
from report_page import VIEW, Page, loneliest
from talk import Talk
from wiretale.analyzer.diff.courses import ALL, Course, bin_width, can_read_samples, courses, has_courses
from wiretale.analyzer.diff.difference import diff_runs
from wiretale.analyzer.diff.run import load_run
from wiretale.analyzer.trace import analyze
from wiretale.reports.html.compare.diff import PAIRS_MOST, overlay, render

pytestmark = pytest.mark.xdist_group("report-diff")

SEGMENT = 1000
WIDE_S = 0.016  # bins that the series table has of so few packets
CLIENT = "10.0.0.1"


def upload(count: int, rtt: float, lost: int | None = None, port: int = 40000) -> Talk:
    """Segments 10 ms apart; a lost one is retransmitted after all others, and only then all is acknowledged."""
    talk = Talk(ends=((CLIENT, port), ("10.0.0.2", 80))).open(rtt)
    begin = 2 * rtt
    for n in range(count):
        talk.data(begin + 10 * n, n * SEGMENT)
        sack = [((lost + 1) * SEGMENT, (n + 1) * SEGMENT)] if lost is not None and n > lost else []
        if n != lost:
            talk.ack(begin + 10 * n + rtt, (lost if sack and lost is not None else n + 1) * SEGMENT, *sack)
    if lost is not None:
        end = begin + 10 * count + rtt
        talk.data(end, lost * SEGMENT).ack(end + rtt, count * SEGMENT)
    talk.packets.sort(key=lambda packet: float(packet.time))
    return talk


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run with RTTs of 20 ms and no loss, and one with RTTs of 40 ms and a loss."""
    folder = tmp_path_factory.mktemp("runs")
    for name, talk in (("before", upload(40, 20.0)), ("after", upload(40, 40.0, lost=20))):
        wrpcap(str(folder / f"{name}.pcap"), talk.packets)
    return folder / "before.pcap", folder / "after.pcap"


def course(path: Path, flow: int = ALL, exact: bool = True) -> Course:
    run = load_run(str(path), keep=True)
    assert has_courses(run) and can_read_samples(run)
    return courses(run, [0], bin_width([run]), exact).by_flow[flow]


@pytest.mark.parametrize("flow", [ALL, 0])
def test_a_course_is_that_of_the_packets(runs: tuple[Path, Path], flow: int) -> None:
    before, after = (course(path, flow) for path in runs)
    assert before.position[-1] == after.position[-1] == 40 * SEGMENT
    assert before.lost[-1] == 0 and after.lost[-1] == 1
    assert before.rtt_shares == pytest.approx([20.0] * len(before.rtt_shares), abs=0.01)
    assert max(after.rtt_shares) == pytest.approx(40.0, abs=0.01)
    # half of the segments have passed 20 intervals after the first
    half = next(x for x, bytes_ in zip(before.x, before.position, strict=True) if bytes_ >= 20 * SEGMENT)
    assert half == pytest.approx(0.040 + 0.190, abs=WIDE_S)
    retransmitted = next(x for x, lost in zip(after.x, after.lost, strict=True) if lost)
    assert retransmitted == pytest.approx((2 * 40 + 400 + 40) / 1000, abs=0.003)


def test_rates_have_all_ip_bytes_and_gaps_are_zero() -> None:
    path = SAMPLES / "timeouts.pcap"
    run = load_run(str(path), keep=True)
    width = bin_width([run])
    every = courses(run, [], width, False).by_flow[ALL]
    sent = sum(row["ip_bytes"] for row in wiretale.analyze(path).directions.rows())
    assert sum(every.throughput) * width / 8e9 == pytest.approx(sent, rel=1e-6)
    useful = sum(row["unique_bytes"] for row in wiretale.analyze(path).directions.rows())
    assert every.position[-1] == pytest.approx(useful, rel=1e-6)
    assert 0.0 in every.throughput and None in every.rtt
    steps = [b - a for a, b in zip(every.x[1:], every.x[2:], strict=False)]
    assert steps == pytest.approx([width / 1e9] * len(steps))


@pytest.mark.parametrize("name", ["fast_retransmissions.pcap", "tcp_losses.pcap", "udp_blocks.pcap", "timeouts.pcap"])
def test_losses_of_a_course_are_those_of_the_measures(name: str) -> None:
    run = load_run(str(SAMPLES / name), keep=True)
    every = courses(run, [], bin_width([run]), False).by_flow[ALL]
    measures = ("lost_upstream", "lost_downstream", "blocks_lost")
    assert every.lost[-1] == sum(run.total[measure] or 0 for measure in measures) > 0


def test_tables_give_the_course_of_their_capture(tmp_path: Path) -> None:
    path = SAMPLES / "fast_retransmissions.pcap"
    wiretale.analyze(path).write(tmp_path / "tables")
    run, tables = load_run(str(path), keep=True), load_run(str(tmp_path / "tables"))
    width = bin_width([run, tables])
    assert courses(run, [0, 2], width, False) == courses(tables, [0, 2], width, False)
    assert not can_read_samples(tables)


def test_delays_are_above_the_least_of_their_direction() -> None:
    path = SAMPLES / "udp_blocks.pcap"
    run = load_run(str(path), keep=True)
    of_flow = courses(run, [0], bin_width([run]), False).by_flow[0]
    delays = [
        row["latency_ns"] for row in wiretale.analyze(path).blocks.rows() if not row["flow"] and not row["direction"]
    ]
    assert of_flow.delay_samples == len(delays) and of_flow.delay_shares[0] == 0
    assert of_flow.delay_shares[-1] == pytest.approx((max(delays) - min(delays)) / 1e6)


def test_unjudged_losses_are_unknown(tmp_path: Path) -> None:
    from scapy.all import IP, UDP, Ether

    packets = [Ether(dst=NEIGHBOR) / IP(src=CLIENT, dst="10.0.0.2") / UDP(sport=9, dport=9) / b"text" for _ in range(3)]
    for n, packet in enumerate(packets):
        packet.time = 1_700_000_000 + n
    wrpcap(str(tmp_path / "u.pcap"), packets)
    unjudged = course(tmp_path / "u.pcap")
    assert unjudged.lost == [] and unjudged.rtt_samples == 0 and unjudged.rtt_shares == []


def test_at_most_the_most_changed_flows_can_be_chosen(tmp_path: Path) -> None:
    talks = [upload(3 + n % 5, 20.0, port=40000 + n) for n in range(PAIRS_MOST + 5)]
    for name in ("a", "b"):
        packets = [packet for talk in talks for packet in talk.packets]
        wrpcap(str(tmp_path / f"{name}.pcap"), sorted(packets, key=lambda packet: float(packet.time)))
    changes = diff_runs(*(load_run(str(tmp_path / f"{name}.pcap"), keep=True) for name in ("a", "b")))
    entries, _ = overlay(changes)
    assert len(entries) == PAIRS_MOST + 1
    assert f"the {PAIRS_MOST} most changed of {PAIRS_MOST + 5} matched flows" in render(changes)


# --- the command


def test_the_report_leaves_the_output_as_it_is(runs: tuple[Path, Path], tmp_path: Path, wiretale_run: Runner) -> None:
    plain = wiretale_run("diff", *runs)
    page = tmp_path / "page.html"
    done = wiretale_run("diff", *runs, "--report", page)
    assert done.stdout == plain.stdout and done.returncode == 0 and f"wrote {page}" in done.stderr
    as_json = wiretale_run("diff", *runs, "--json", "--report", tmp_path / "other.html")
    assert as_json.stdout == wiretale_run("diff", *runs, "--json").stdout
    assert json.loads(as_json.stdout)["sentence"].split(":")[0] in page.read_text("utf-8")
    assert wiretale_run("diff", *runs, "--report", "-").stdout == page.read_text("utf-8")
    quiet = wiretale_run("diff", *runs, "-q", "--report", page, "--fail-if", "lost_downstream>0")
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (1, "", "")


def test_a_page_replaces_neither_a_run_nor_goes_where_the_json_goes(
    runs: tuple[Path, Path], tmp_path: Path, wiretale_run: Runner
) -> None:
    before = runs[0].read_bytes()
    for report in (runs[0], runs[1]):
        assert wiretale_run("diff", *runs, "--report", report, "--overwrite").returncode == 2
    assert runs[0].read_bytes() == before
    wiretale.analyze(runs[0]).write(tmp_path / "tables")
    refused = wiretale_run("diff", tmp_path / "tables", runs[1], "--report", tmp_path / "tables" / "flows.parquet")
    assert refused.returncode == 2
    assert wiretale_run("diff", *runs, "--json", "--report", "-").returncode == 2


def test_reports_of_the_generator_have_no_packets_to_draw(tmp_path: Path, page: Page) -> None:
    report = {
        "schema": "wiretale.receive/1",
        "test": {"protocol": "tcp"},
        "receiver": {"rate_mbit_s": 10, "elapsed_s": 1},
    }
    (tmp_path / "a.json").write_text(json.dumps(report))
    run = load_run(str(tmp_path / "a.json"))
    path = tmp_path / "page.html"
    path.write_text(render(diff_runs(run, run)))
    page.open(path)
    assert "No packets over time are known of A and B" in page.page.inner_text("main")
    assert page.page.locator("#plot").count() == 0 and page.complaints == []


# --- the page


@pytest.fixture(scope="module")
def made(runs: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("diff") / "diff.html"
    path.write_text(render(diff_runs(*(load_run(str(run), keep=True) for run in runs))))
    return path


@pytest.fixture
def opened(made: Path, browser: Any) -> Iterator[Page]:
    tab = browser.new_page(viewport=VIEW)
    yield Page(tab).open(made)
    tab.close()


def traces(page: Page, plot: str = "plot") -> list[dict[str, Any]]:
    look = "({meta: t.meta, axis: t.yaxis || 'y', y: t.y, x: t.x, visible: t.visible, dash: t.line.dash, color: t.line.color})"
    drawn: list[dict[str, Any]] = page.page.evaluate(f"document.getElementById('{plot}').data.map(t => {look})")
    return drawn


def test_the_verdict_comes_first_then_changes_then_the_runs(opened: Page, runs: tuple[Path, Path]) -> None:
    text = opened.page.inner_text("body")
    sentence = opened.page.inner_text("h1")
    assert sentence.startswith("B is slower: goodput") and "The runs carried" not in sentence
    answers = [f"{name}: {analyze(run).answer.sentence}" for name, run in zip("AB", runs, strict=True)]
    order = [
        text.index(word)
        for word in (sentence, *answers, "Changes", "Findings that appeared", "Both runs over time", "In total")
    ]
    assert order == sorted(order)


def test_both_runs_are_drawn_apart_in_each_panel(opened: Page) -> None:
    for axis in ("y", "y2", "y3", "y4"):
        a, b = (trace for trace in traces(opened) if trace["axis"] == axis)
        assert (a["meta"], b["meta"]) == ("A", "B") and a["dash"] != b["dash"] and a["color"] != b["color"]
    lost = {trace["meta"]: trace["y"][-1] for trace in traces(opened) if trace["axis"] == "y4"}
    assert lost == {"A": 0, "B": 1}
    words = opened.page.locator("#plot .annotation-text").all_text_contents()
    assert [text.split()[-1] for text in words] == ["Mbit/s", "kB", "ms", "far"]
    ticks = opened.page.evaluate(
        "[...document.querySelectorAll('#plot .ytick text, #plot .y2tick text')].map(t => t.textContent)"
    )
    assert len(ticks) >= 4 and all(text.replace(".", "").isdecimal() for text in ticks), (
        ticks
    )  # the unit is in the head
    shares = {trace["meta"]: trace["x"] for trace in traces(opened, "rtt")}
    assert max(shares["A"]) == pytest.approx(20, abs=0.1) and max(shares["B"]) == pytest.approx(40, abs=0.1)


def test_the_mouse_reads_values_of_each_panel(opened: Page) -> None:
    points = opened.drawn()
    for panel in ("y", "y2", "y3", "y4"):
        (point,) = loneliest(
            [candidate for candidate in points if candidate.panel == panel and candidate.trace == "B"], 1
        )
        assert opened.hover(point).startswith("B at"), panel
    assert opened.complaints == []


def test_a_zoom_and_a_hidden_run_are_in_the_link(opened: Page, page: Page) -> None:
    box = opened.page.locator("#plot .bglayer rect, #plot .draglayer .xy .nsewdrag").last.bounding_box()
    assert box
    opened.drag((box["x"] + 100, box["y"] + 20), (box["x"] + 300, box["y"] + box["height"] - 10))
    assert "t=" in opened.hash()
    start, end = opened.range()
    opened.page.locator("#plot .legendtoggle").first.click()
    opened.until("location.hash.includes('toggled=A')")
    opened.until("document.getElementById('rtt').data[0].visible === 'legendonly'")
    assert {trace["visible"] for trace in traces(opened) if trace["meta"] == "A"} == {"legendonly"}
    assert opened.range() == pytest.approx([start, end])
    page.visit(opened)
    assert page.range() == pytest.approx([start, end]) and page.complaints == []
    opened.page.go_back()
    opened.until("!location.hash.includes('toggled')")
    opened.page.go_back()
    opened.until("!location.hash.includes('t=')")
    opened.until("document.getElementById('plot')._fullLayout.xaxis.range[0] === 0")


def test_a_pair_of_flows_is_chosen(opened: Page) -> None:
    opened.page.select_option("#pair", "1")
    opened.until("document.body.dataset.flow === '1'")
    assert opened.hash() == "#flow=1"
    payload = {trace["meta"]: trace["y"][-1] for trace in traces(opened) if trace["axis"] == "y2"}
    assert payload == {"A": 40 * SEGMENT, "B": 40 * SEGMENT}
    opened.page.go_back()
    opened.until("document.body.dataset.flow === '0' && document.getElementById('pair').value === '0'")


def test_the_plot_obeys_keys(opened: Page) -> None:
    opened.page.focus("#plot")
    full = opened.range()
    opened.page.keyboard.press("+")
    opened.until("location.hash.includes('t=')")
    assert opened.range()[1] - opened.range()[0] == pytest.approx((full[1] - full[0]) / 2)
    opened.page.keyboard.press("0")
    opened.until("!location.hash.includes('t=')")


@pytest.mark.parametrize("width", [390, 1440])
def test_a_page_is_no_wider_than_its_window(made: Path, browser: Any, width: int) -> None:
    tab = browser.new_page(viewport={"width": width, "height": 900})
    page = Page(tab).open(made)
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width
    tab.close()
