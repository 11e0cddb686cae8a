# SPDX-License-Identifier: Apache-2.0
"""The pictures of a flow beside another rasterization of its packets, and the speed at which they are drawn and moved."""

from __future__ import annotations

import base64
import math
import random
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest

import wiretale
from plain_wire import Connection, Wire
from report_page import VIEW, Page
from viewer import viewing

SENDER = {"light": (0x2A, 0x35, 0x40), "dark": (0xE4, 0xEA, 0xF0)}
NEAR = 2  # px, by which lines are wider and smoothed
FINE = 2  # pixels of a screen, in each direction, for one of the page
# Of each column of pixels in a box of a picture the first and the last row that has the color of the sender.
EXTENTS = """async ([picture, left, top, width, height, color]) => {
  const bytes = Uint8Array.from(atob(picture), (letter) => letter.charCodeAt(0));
  const image = await createImageBitmap(new Blob([bytes]));
  const canvas = new OffscreenCanvas(image.width, image.height), context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(left, top, width, height), lines = [];
  for (let x = 0; x < width; x++) {
    let first = -1, last = -1;
    for (let y = 0; y < height; y++) {
      const at = 4 * (y * width + x);
      const off = Math.abs(data[at] - color[0]) + Math.abs(data[at + 1] - color[1]) + Math.abs(data[at + 2] - color[2]);
      if (off < 200) [first, last] = [first < 0 ? y : first, y];
    }
    lines.push([first, last]);
  }
  return lines;
}"""
ALONE = (
    "ack",
    "window",
    "sack",
    "cwnd",
    "room",
    "throughput1",
    "acked",
    "rtt1",
    "least",
)  # toggled: the sender's series stay
WITHOUT_OTHERS = "#flow=0" + "".join(f"&toggled={name}" for name in ALONE)

Steps = list[tuple[float, float, float]]  # second, least and greatest value


class Panel(NamedTuple):
    """A panel in the window, and its ranges."""

    left: float
    top: float
    width: float
    height: float
    times: list[float]
    values: list[float]


def transfer(packets: int, path: Path, sizes: Sequence[int] = ()) -> Path:
    """Rounds of segments and their ACKs, of these sizes in turn or of slowly changing ones, with pauses."""
    chance, talk = random.Random(3), Connection(Wire()).open()
    sequence, at, count, turn = 0, 50.0, 3, cycle(sizes)
    while count < packets:
        size = min(next(turn, 2 + count // 40 % 60), (packets - count + 1) // 2)
        for number in range(size):
            talk.data(at + number * 0.02, sequence + 1000 * number, 1000)
        for number in range(size):
            talk.ack(at + 10 + number * 0.02 + chance.random() * 0.01, sequence + 1000 * (number + 1), window=4096)
        sequence, at, count = sequence + 1000 * size, at + 11 + size * 0.02, count + 2 * size
        at += 300 * (chance.random() < 0.001)
    return talk.wire.write(path)


def series_of(trace: wiretale.Trace) -> dict[str, Steps]:
    """What the sender's series show: bars of the sequence, bytes in flight as steps, round trips as points."""
    packets, lines, sent, acked = trace.packets(0), dict[str, Steps](sequence=[], flight=[], rtt=[]), 0, 0
    base = packets[0]["time_ns"] or 0
    columns = ("time_ns", "direction", "sequence", "payload_bytes", "acknowledged", "rtt_ns")
    for ns, side, sequence, size, ack, rtt in zip(*map(packets.column, columns), strict=True):
        second = (ns - base) / 1e9
        if side == 0 and size:
            lines["sequence"].append((second, sequence, sequence + size))
            sent = max(sent, sequence + size)
        if side == 1:
            acked = max(acked, ack or 0)
            if rtt is not None:
                lines["rtt"].append((second, rtt / 1e6, rtt / 1e6))
        if sent and (size or side == 1):
            lines["flight"].append((second, sent - acked, sent - acked))
    return lines


def expected(steps: Steps, panel: Panel, is_step: bool) -> dict[int, tuple[float, float]]:
    """By column of pixels the rows from the greatest to the least value; a step lasts until the next one."""
    (begin, end), (low, high) = panel.times, panel.values
    rows: dict[int, tuple[float, float]] = {}

    def cover(column: int, least: float, greatest: float) -> None:
        first, last = (panel.height * (high - value) / (high - low) for value in (greatest, least))
        before_rows = rows.get(column, (math.inf, -math.inf))
        rows[column] = (min(before_rows[0], first), max(before_rows[1], last))

    before: tuple[int, float] | None = None
    for second, least, greatest in steps:
        column = math.floor(panel.width * (second - begin) / (end - begin))
        if is_step and before:
            for passed in range(before[0], column + 1):
                cover(passed, before[1], before[1])
        cover(column, least, greatest)
        before = (column, greatest)
    return {column: ends for column, ends in rows.items() if 0 <= column < panel.width}


def panel_of(page: Page, name: str, scale: int) -> Panel:
    """The panel in the pixels of a screen that has so many for one of the page."""
    axis = page.panel(name)
    times, values = page.range(), page.range(axis)
    left, right = (page.pixel("xaxis", time) for time in times)
    bottom, top = (page.pixel(axis, value) for value in values)
    left, top, right, bottom = (scale * pixel for pixel in (left, top, right, bottom))
    return Panel(left, top, right - left, bottom - top, times, values)


def throughput(trace: wiretale.Trace, bin_s: float) -> Steps:
    """Bits per second of the sender's packets, in bins from the begin of the capture to its end."""
    packets, sums = trace.packets(0), dict[int, int]()
    base = packets[0]["time_ns"] or 0
    for ns, side, size in zip(*map(packets.column, ("time_ns", "direction", "ip_bytes")), strict=True):
        place = math.floor((ns - base) / 1e9 / bin_s + 1e-6)
        sums[place] = sums.get(place, 0) + size * (side == 0)
    rates = [8 * sums.get(place, 0) / bin_s for place in range(max(sums) + 1)]
    return [(place * bin_s, rate, rate) for place, rate in enumerate([*rates, rates[-1]])]


def drawn_rows(page: Page, panel: Panel, scheme: str) -> list[tuple[int, int]]:
    box = [round(panel.left), round(panel.top), round(panel.width), round(panel.height)]
    picture = base64.b64encode(page.page.screenshot()).decode()
    return [(first, last) for first, last in page.page.evaluate(EXTENTS, [picture, *box, SENDER[scheme]])]


def is_near(ends: tuple[float, float], column: int, pictured: dict[int, tuple[float, float]], room: int) -> bool:
    """Whether the columns beside one reach as far as its ends, and they as far as these, but for some room."""
    beside = [pictured[near] for near in range(column - room, column + room + 1) if near in pictured]
    return (
        bool(beside)
        and min(top for top, _ in beside) - room <= ends[0]
        and ends[1] <= max(end for _, end in beside) + room
    )


def compare(page: Page, series: dict[str, Steps], scheme: str, scale: int = 1) -> None:
    """Asserts that each panel shows the sender's series and nothing else in its color."""
    page.page.evaluate("document.getElementById('plot').scrollIntoView()")
    page.page.evaluate("document.querySelectorAll('.panel-label, .panel-edge').forEach((words) => words.remove())")
    for name, steps in series.items():
        panel = panel_of(page, name, scale)
        expected_rows = expected(steps, panel, is_step=name in ("flight", "rate"))
        drawn = {
            column: (float(first), float(last))
            for column, (first, last) in enumerate(drawn_rows(page, panel, scheme))
            if first >= 0
        }
        missing = [column for column, ends in expected_rows.items() if not is_near(ends, column, drawn, NEAR * scale)]
        invented = [column for column, ends in drawn.items() if not is_near(ends, column, expected_rows, NEAR * scale)]
        assert not missing and not invented, (name, len(expected_rows), missing[:9], invented[:9])
    assert page.complaints == []


@pytest.fixture
def fine_screen(browser: Any) -> Iterator[Page]:
    """A tab on a screen with several pixels for one of the page."""
    tab = browser.new_page(viewport=VIEW, device_scale_factor=FINE)
    tab.set_default_timeout(90_000)
    yield Page(tab)
    tab.close()


@pytest.mark.parametrize(
    ("packets", "in_page", "scheme"),
    [
        (10, 10, "light"),
        (10_000, 10_000, "light"),
        (500_000, 500_000, "light"),
        (10_000, 1_000, "light"),
        (10_000, 10_000, "dark"),
    ],
)
def test_each_panel_shows_every_packet(
    packets: int,
    in_page: int,
    scheme: Literal["light", "dark"],
    page: Page,
    fine_screen: Page,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The page has all packets, or the least and greatest of columns of time; the screen has one or four pixels for each."""
    page.page.emulate_media(color_scheme=scheme)
    monkeypatch.setattr("wiretale.reports.html.analyze.PACKETS_MOST", in_page)
    trace = wiretale.analyze(transfer(packets, tmp_path / "transfer.pcap"))
    report, series = trace.report(tmp_path / "report.html"), series_of(trace)
    for tab, scale in [(page, 1), (fine_screen, FINE)] if scheme == "light" else [(page, 1)]:
        tab.open(report, WITHOUT_OTHERS)
        bins = {"rate": throughput(trace, tab.page.evaluate("shownBin()"))} if packets == in_page else {}
        compare(tab, {**series, **bins}, scheme, scale)


@pytest.mark.parametrize("sizes", [(), (2, 20)])
def test_packets_that_stand_for_many_have_the_outline_of_all(sizes: Sequence[int], page: Page, tmp_path: Path) -> None:
    """`wiretale view` answers a large range with the extremes of each column of pixels."""
    path = transfer(40_000, tmp_path / "transfer.pcap", sizes)
    with viewing(path) as viewer:
        page.page.goto(viewer.url + WITHOUT_OTHERS)
        page.until("document.body.dataset.ready && Number(document.body.dataset.of) >= 40000")
        assert page.page.evaluate("tables.packets.time.length") < 20_000
        compare(page, series_of(wiretale.analyze(path)), "light")


# --- speed

MEASURED = """async () => {
  const plot = document.getElementById("plot"), own = { ...colors(), ...flowColors() };
  const median = (list) => list.sort((a, b) => a - b)[list.length >> 1];
  const time = async (does) => { const begin = performance.now(); await does(); return performance.now() - begin; };
  const empty = plot.data.map((trace) => ({ ...trace, x: [], y: [], customdata: [] }));
  const times = { empty: [], exact: [], moved: [] };
  const [from, to] = view.range;
  for (let i = 0; i < 9; i++) {
    const layout = { ...layoutFor(view.used, own), shapes: [] };
    times.empty.push(await time(() => Plotly.react(plot, empty.map((trace) => ({ ...trace })), layout, { staticPlot: true })));
    times.moved.push(await time(() => movePicture([from + i * 0.01, to + i * 0.01], draw)));
    times.exact.push(await time(draw));
  }
  return Object.fromEntries(Object.entries(times).map(([name, list]) => [name, median(list)]));
}"""


@pytest.mark.alone
def test_half_a_million_packets_move_at_once(page: Page, tmp_path: Path) -> None:
    trace = wiretale.analyze(transfer(500_000, tmp_path / "transfer.pcap"))
    page.open(trace.report(tmp_path / "report.html"), "#flow=0&t=5-20")
    times = page.page.evaluate(MEASURED)
    assert times["exact"] <= 4 * times["empty"], times
    assert times["moved"] <= times["empty"], times
    before = page.hash()
    page.page.evaluate("document.getElementById('plot').scrollIntoView()")
    page.page.mouse.move(600, 150)
    page.page.keyboard.down("Control")
    for _ in range(8):
        page.page.mouse.wheel(0, -40)
    page.page.keyboard.up("Control")
    page.until(f"location.hash !== {before!r}")
    page.until("!document.querySelector('#dense canvas').style.transform")
    assert page.complaints == []
