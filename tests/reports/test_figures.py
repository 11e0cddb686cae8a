# SPDX-License-Identifier: Apache-2.0
"""Figures of flows in Python, as pictures of the installed command, and in a notebook."""

from __future__ import annotations

import itertools
import random
import re
import struct
import subprocess
import sys
import zlib
from html import escape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import needs
import wiretale
from checkout import SAMPLES
from plain_wire import Wire, block
from report_page import Page
from wiretale.reports import notebook
from wiretale.reports.figures.picture import by_kaleido, picture, with_ticks
from wiretale.reports.figures.points import FlowPoints, Points
from wiretale.reports.figures.styles import COLORS, DRAWN, PAGE_ONLY
from wiretale.reports.html.figures import SERIES
from wiretale.reports.html.finding_rows import finding_rows
from wiretale.reports.html.first_screen import cause_flows
from wiretale.reports.html.offline_page import part
from wiretale.reports.html.packing import base_time

LOSSES = SAMPLES / "tcp_losses.pcap"
NOTEBOOK = SAMPLES.parent / "docs" / "notebook.ipynb"
BESIDE = {"parts", "evidence"}  # of the figure, which are no series of points
BROWSER = needs.marked(needs.programs("chromium"), needs.browser(), needs.plain_processes())


def points_of(path: Path, flow: int = 0, most: int | None = None) -> dict[str, Points]:
    with FlowPoints(wiretale.analyze(path), flow, most) as points:
        return points.all()


def test_points_of_packets_are_those_of_the_table() -> None:
    trace = wiretale.analyze(LOSSES)
    points, packets = points_of(LOSSES), trace.packets().rows()
    base = min(row["time_ns"] for row in packets) // 10**9 * 10**9
    data = [row for row in packets if row["direction"] == 0 and row["payload_bytes"]]
    for key, again in (("data", False), ("again", True)):
        rows = [row for row in data if (row["unique_bytes"] < row["payload_bytes"]) == again]
        assert points[key].frames == [row["frame"] for row in rows]
        assert points[key].y == [row["sequence"] for row in rows]
        assert points[key].y2 == [row["sequence"] + row["payload_bytes"] for row in rows]
        assert points[key].x == pytest.approx([(row["time_ns"] - base) / 1e9 for row in rows], abs=1e-9)


def test_verdicts_are_marks_at_their_segments() -> None:
    points, packets = points_of(LOSSES), wiretale.analyze(LOSSES).packets().rows()
    assert points["again"].frames == [155, 338]
    assert points["fast_retransmission"].frames == [155] and points["timeout_retransmission"].frames == [338]
    assert points["fast_retransmission"].texts == [
        "fast retransmission, downstream, 1,448 bytes, by acks, see frame 90"
    ]
    acks = [row for row in packets if row["direction"] == 1 and row["acknowledged"] is not None]
    assert points["ack"].y == [row["acknowledged"] for row in acks]
    blocks = [row for row in acks for n in ("", "2", "3", "4") if row[f"sack{n}_end"] is not None]
    assert len(points["sack"].y) == len(blocks) > 0
    assert points["downstream"].y == [1, 2] and "upstream" not in points


def test_lost_originals_and_the_least_round_trip() -> None:
    points, packets = points_of(LOSSES), {row["frame"]: row for row in wiretale.analyze(LOSSES).packets()}
    assert points["lost"].frames == [90, 317]
    # Originals have the bytes of their retransmissions.
    assert points["lost"].y == [packets[frame]["sequence"] for frame in (155, 338)]
    assert points["lost"].texts[0] == "lost downstream, retransmitted in frame 155"
    samples = [row["rtt_ns"] / 1e6 for row in packets.values() if row["direction"] == 1 and row["rtt_ns"] is not None]
    assert points["least"].y == pytest.approx([min(samples)] * 2) and points["least"].x[0] < points["least"].x[1]


def test_missing_numbers_and_jitter_of_many_blocks(tmp_path: Path) -> None:
    drawn, wire, lost = random.Random(5), Wire(), {0, 40, 41, 700, 1299}
    order = [number for number in range(1300) if number not in lost]
    order[200], order[201] = order[201], order[200]
    for place, number in enumerate(order):
        now = 10.0 * place
        payload = block(number, 1470, sent_ms=now - drawn.uniform(1, 9))
        wire.udp(now, payload, 4001)
        if place == 300:
            wire.udp(now + 3, payload, 4001)
    path = wire.write(tmp_path / "blocks.pcap")
    trace = wiretale.analyze(path)
    points, arrived = points_of(path), list(trace.blocks)
    rows = [row for row in arrived if row["verdict"] != "duplicate"]
    assert len(rows) == len(order) == len(arrived) - 1 == 1295
    assert not {"data", "spacing0"} & points.keys()  # numbers instead, as in the page
    jitter, expected = 0.0, []
    for before, row in itertools.pairwise(arrived):
        jitter += (abs(row["latency_ns"] - before["latency_ns"]) / 1e6 - jitter) / 16
        expected.append(jitter)
    assert points["jitter0"].y == pytest.approx(expected, rel=1e-9)
    assert jitter * 1e6 == pytest.approx(trace.directions[0]["jitter_ns"], abs=1)
    assert points["jitter0"].frames == [row["last_frame"] for row in arrived[1:]]
    frame_of = {row["sequence"]: row["last_frame"] for row in rows}
    missing = points["missing"]
    assert list(zip(missing.y, missing.y2, missing.frames, strict=True)) == [
        (39.5, 41.5, frame_of[42]),
        (699.5, 700.5, frame_of[701]),
    ]
    assert missing.texts == ["numbers 40 to 41 never came", "number 700 never came"]


def test_bytes_in_flight_are_those_sent_and_not_acknowledged() -> None:
    sent = acknowledged = None
    expected = []
    for row in wiretale.analyze(LOSSES).packets():
        if row["direction"] == 0:
            sent = max(sent or 0, row["sequence"] + row["payload_bytes"])
        elif row["acknowledged"] is not None:
            acknowledged = max(acknowledged or 0, row["acknowledged"])
        if sent is not None and acknowledged is not None:
            expected.append(max(0, sent - acknowledged))
    assert points_of(LOSSES)["flight"].y == expected and max(expected) > 80_000


def thinned(points: Points, most: int) -> list[int]:
    """The first, last, least and greatest point of each column of time."""
    if len(points.y) <= most:
        return list(range(len(points.y)))
    times, columns = [round(second * 1e9) for second in points.x], dict[int, list[int]]()
    for i, ns in enumerate(times):
        columns.setdefault((ns - times[0]) * (most // 4) // (times[-1] - times[0] + 1), []).append(i)
    tops = [low if high is None else high for low, high in zip(points.y, points.y2, strict=True)]
    ends = (
        {rows[0], rows[-1], min(rows, key=lambda i: points.y[i]), max(rows, key=lambda i: tops[i])}
        for rows in columns.values()
    )
    return sorted(set().union(*ends))


@pytest.mark.parametrize("most", [4, 40, 77, 1000])
def test_columns_of_time_keep_their_least_and_greatest(most: int) -> None:
    full, few = points_of(LOSSES), points_of(LOSSES, most=most)
    assert full.keys() == few.keys()
    for key, points in full.items():
        indexes = thinned(points, most)
        assert few[key].y == [points.y[i] for i in indexes] and few[key].x == [points.x[i] for i in indexes], key


def test_every_flow_of_every_sample_has_a_figure_of_known_series(sample: Path) -> None:
    trace = wiretale.analyze(sample)
    keys = {series.key for series in DRAWN}
    for row in trace.flows[:5]:
        with FlowPoints(trace, row["flow"], None) as points:
            drawn = points.all()
        figure = trace.figure(row["flow"])
        assert {curve.meta for curve in figure.data} - BESIDE == drawn.keys() & keys != set()
        assert {key.split("_")[0] for key in drawn.keys() - keys} <= {
            "gap",
            "suspected",
            "idle",
            "reset",
            "icmp",
            "block",
            "ack",
        }
        for curve in figure.data:
            assert (
                len(curve.x or ())
                == len(curve.y or ())
                == len(curve.customdata if curve.customdata is not None else curve.x)
            )


def test_panels_are_chosen_and_named() -> None:
    trace = wiretale.analyze(LOSSES)
    both = trace.flow(0).plot("rtt", "throughput")
    keys = {"rtt0", "rtt1", "least", "throughput0", "throughput1", "acked"}
    assert {curve.meta for curve in both.data} - {"evidence"} == keys
    assert [head.text for head in both.layout.annotations] == ["<b>Throughput</b> bit/s", "<b>Round trip</b> ms"]
    with pytest.raises(wiretale.UsageError, match=r"^panel 'nothing': expected sequence, numbers"):
        trace.figure(0, "nothing")
    with pytest.raises(wiretale.UsageError, match=r"flow 0 has no data for it \(expected sequence, flight"):
        trace.figure(0, "fragments")
    with pytest.raises(wiretale.UsageError, match="flow 1: expected a number"):
        trace.figure(1)


@BROWSER
@pytest.mark.parametrize("sample", ["tcp_losses", "udp_blocks", "vlan_ipv6", "ip_fragments"])
def test_a_figure_has_what_the_page_draws(sample: str, page: Page, tmp_path: Path) -> None:
    trace = wiretale.analyze(SAMPLES / f"{sample}.pcap")
    page.open(trace.report(tmp_path / "report.html"), "#flow=0")
    shown = page.page.evaluate(
        "Object.fromEntries(Object.entries(view.all).map(([key, s]) => [key, [[...s.x], [...s.y]]]))"
    )
    panels = page.page.evaluate("panelsWithData().map((panel) => panel.name)")
    figure = trace.figure(0, most=None)
    assert figure.layout.meta["panels"] == panels
    assert {curve.meta for curve in figure.data} - {"evidence"} == shown.keys() & {series.key for series in DRAWN}
    for curve in figure.data:
        if curve.meta.startswith("throughput") or curve.meta == "acked":
            by_page = dict(zip(*shown[curve.meta], strict=True))
            for second, rate in zip(curve.x[:-1], curve.y[:-1], strict=True):
                near = min(by_page, key=lambda x: abs(x - second))
                assert abs(near - second) < 1e-9 and by_page[near] == pytest.approx(rate, abs=1), (curve.meta, second)


def test_the_lane_of_a_figure_is_the_account_of_time() -> None:
    trace = wiretale.analyze(LOSSES)
    figure, spans = trace.figure(0), trace.time_spans(0).rows()
    seconds = {row["part"]: 0.0 for row in spans}
    for row in spans:
        seconds[row["part"]] += (row["end_ns"] - row["start_ns"]) / 1e9
    lanes = [curve for curve in figure.data if curve.meta == "parts"]
    sums = [sum(end - start for start, end in zip(curve.x[::6], curve.x[1::6], strict=True)) for curve in lanes]
    assert sums == pytest.approx(sorted(seconds.values(), reverse=True), abs=1e-6)


def test_a_figure_has_a_band_for_each_cause_with_a_time() -> None:
    trace = wiretale.analyze(SAMPLES / "udp_blocks.pcap")
    figure, listed = trace.figure(0), cause_flows(trace, finding_rows(trace, base_time(trace), False))
    bands = [shape for shape in figure.layout.shapes if shape.name == "evidence"]
    names = [curve.name.replace("<br>", " ") for curve in figure.data if curve.meta == "evidence"]
    parts = [entry for entry in listed if 0 in entry["flows"] and entry["from"] is not None]
    assert 0 < len(bands) == len(names) <= len(parts)
    for band, name in zip(bands, names, strict=True):
        entry = listed[int(name.split()[0]) - 1]
        assert name.endswith(entry["title"])
        assert band.x0 <= entry["from"] <= entry["to"] <= band.x1 < entry["to"] + 0.01


def test_a_prefix_of_a_number_stands_before_its_unit() -> None:
    """Plotly's own would be 60M where the page has 60 MB, and 10k for 10 s in ms."""
    layout = wiretale.analyze(LOSSES).figure(0, "sequence", "rtt", "throughput").layout
    looks = {head.text: (layout[head.name].exponentformat, layout[head.name].ticksuffix) for head in layout.annotations}
    assert looks == {
        "<b>Sequence</b> bytes": ("SI", "B"),
        "<b>Throughput</b> bit/s": ("SI", "bit/s"),
        "<b>Round trip</b> ms": ("none", None),
    }


def test_a_picture_has_round_ticks_in_the_unit_of_its_head() -> None:
    still = with_ticks(wiretale.analyze(LOSSES).figure(0, "sequence", "rtt", "throughput"))
    heads = {head.name: head.text for head in still.layout.annotations}
    assert heads == {
        "yaxis": "<b>Sequence</b> kB",
        "yaxis2": "<b>Throughput</b> Mbit/s",
        "yaxis3": "<b>Round trip</b> ms",
    }
    assert still.layout.yaxis.tickvals == (0, 100_000, 200_000, 300_000)
    assert (still.layout.yaxis.ticktext, still.layout.yaxis.ticksuffix) == (("0", "100", "200", "300"), "")


def test_a_figure_without_packets_has_the_series_of_bins() -> None:
    with LOSSES.open("rb") as file:
        script = "import wiretale; t = wiretale.analyze('-'); print(*sorted(one.meta for one in t.figure(0).data))"
        done = subprocess.run([sys.executable, "-c", script], stdin=file, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [
        "downstream",
        "evidence",
        "flight",
        "room",
        "rtt0",
        "rtt1",
        "throughput0",
        "throughput1",
    ]


def test_colors_are_those_of_the_page() -> None:
    light = part("page.css").partition("@media")[0]
    tokens = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", light))
    assert {name: tokens[name] for name in COLORS} == COLORS
    assert {series.color for series in SERIES} <= COLORS.keys()
    assert {series.key for series in SERIES} > PAGE_ONLY


def test_a_notebook_shows_answer_bar_and_causes() -> None:
    trace = wiretale.analyze(LOSSES)
    html = trace._repr_html_()
    places = [
        html.index(escape(text))
        for text in (trace.answer.sentence, "Where the time went", "Losses at the end of a burst")
    ]
    assert places == sorted(places) and html.count(escape(trace.answer.sentence)) == 1
    assert "loss 302 ms" in html and notebook.COLORS["part-network-deep"] in html
    tokens = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", part("page.css").partition("@media")[0]))
    assert {name: tokens[name.removeprefix("part-")] for name in notebook.COLORS} == notebook.COLORS


def test_a_notebook_shows_a_small_plot() -> None:
    trace = wiretale.analyze(LOSSES)
    for html in (trace._repr_html_(), trace.flow(0)._repr_html_()):
        svg = max(re.findall(r"<svg.*?</svg>", html, re.DOTALL), key=len)
        assert len(svg) < 40_000
        drawn = ElementTree.fromstring(svg)
        assert {COLORS["sender"], COLORS["receiver"], COLORS["network"]} <= {
            element.get(name, "") for element in drawn.iter() for name in ("stroke", "fill")
        }


def has_colors(content: bytes, least: int) -> bool:
    """Whether a PNG of 8-bit RGB or RGBA has so many colors; it is decoded only as far as they are."""
    place, data, head = 8, b"", b""
    while place < len(content):
        (size,), kind = struct.unpack(">I", content[place : place + 4]), content[place + 4 : place + 8]
        body = content[place + 8 : place + 8 + size]
        head, data = body if kind == b"IHDR" else head, data + (body if kind == b"IDAT" else b"")
        place += size + 12
    width, height, depth, kind_of = struct.unpack(">IIBB", head[:10])
    assert depth == 8 and kind_of in (2, 6)
    step, lines = {2: 3, 6: 4}[kind_of], zlib.decompress(data)
    before, colors = bytearray(width * step), set()
    for row in range(height):
        start = row * (width * step + 1)
        line = bytearray(lines[start + 1 : start + 1 + width * step])
        unfilter(lines[start], line, before, step)
        colors |= {bytes(line[i : i + step]) for i in range(0, len(line), step)}
        before = line
        if len(colors) >= least:
            return True
    return False


def unfilter(kind: int, line: bytearray, above: bytearray, step: int) -> None:
    for i in range(len(line) if kind else 0):
        left, up, corner = (line[i - step], above[i], above[i - step]) if i >= step else (0, above[i], 0)
        nearest = min((left, up, corner), key=lambda neighbor: abs(left + up - corner - neighbor))
        line[i] = (line[i] + (0, left, up, (left + up) // 2, nearest)[kind]) & 255


@BROWSER
def test_pictures_of_the_command_show_the_flow(wiretale_run: Any, tmp_path: Path) -> None:
    files = [tmp_path / f"flow.{form}" for form in ("svg", "png", "pdf")]
    pictures = zip(("0:rtt,sequence", "0:rtt", "0"), files, strict=True)
    done = wiretale_run(
        "analyze", LOSSES, *(word for figure, file in pictures for word in ("--figure", figure, "-o", file))
    )
    assert done.returncode == 0 and done.stderr.splitlines() == [f"wiretale: wrote {file}" for file in files]
    svg = ElementTree.parse(tmp_path / "flow.svg").getroot()
    assert svg.tag == "{http://www.w3.org/2000/svg}svg"
    classes = [element.get("class", "") for element in svg.iter()]
    assert sum(name.startswith("trace scatter") for name in classes) >= 8
    assert {"by timeout", "Round trip ms", "Sequence kB"} <= {"".join(element.itertext()) for element in svg.iter()}
    pdf = (tmp_path / "flow.pdf").read_bytes()
    assert pdf.startswith(b"%PDF-") and len(re.findall(rb"/Type\s*/Page\b", pdf)) == 1
    width, height = map(float, re.findall(rb"/MediaBox\s*\[0 0 ([\d.]+) ([\d.]+)\]", pdf)[0])
    assert width == pytest.approx(900, abs=2) and height < 1.2 * width
    assert has_colors((tmp_path / "flow.png").read_bytes(), 20)


def svg_titles(path: Path) -> set[str]:
    return {"".join(element.itertext()) for element in ElementTree.parse(path).getroot().iter()}


@BROWSER
def test_a_name_for_all_pictures(wiretale_run: Any, tmp_path: Path) -> None:
    figures = ("--figure", "0:sequence,rtt", "--figure", "1:rtt")
    done = wiretale_run("analyze", SAMPLES / "timeouts.pcap", *figures, "-o", tmp_path / "flow-{flow}-{panel}.svg")
    assert done.returncode == 0
    assert {path.name for path in tmp_path.iterdir()} == {"flow-0-sequence-rtt.svg", "flow-1-rtt.svg"}
    assert {"Sequence kB", "Round trip ms"} <= svg_titles(tmp_path / "flow-0-sequence-rtt.svg")
    assert "Sequence, bytes" not in svg_titles(tmp_path / "flow-1-rtt.svg")


@BROWSER
def test_no_picture_is_written_if_one_cannot_be_drawn(wiretale_run: Any, tmp_path: Path) -> None:
    words = ("--figure", "0:rtt", "-o", tmp_path / "a.svg", "--figure", "7:rtt", "-o", tmp_path / "b.svg")
    done = wiretale_run("analyze", LOSSES, "-q", *words)
    assert done.returncode == 2 and "flow 7: expected a number" in done.stderr and not list(tmp_path.iterdir())


@BROWSER
def test_text_of_a_capture_is_text_in_a_picture() -> None:
    figure = wiretale.analyze(LOSSES).figure(0, "rtt")
    figure.layout.title.text = "</script><script>document.title = 'run'</script>"
    drawn = picture(figure, "svg").decode()
    assert "<script" not in drawn and "document.title" in drawn


@BROWSER
def test_kaleido_draws_the_same() -> None:
    pytest.importorskip("kaleido")
    figure = wiretale.analyze(LOSSES).figure(0, "rtt")
    root = ElementTree.fromstring(by_kaleido(figure, "svg"))
    assert sum(element.get("class", "").startswith("trace scatter") for element in root.iter()) == len(figure.data) == 4


def test_without_a_browser_one_line_says_so(tmp_path: Path) -> None:
    words = ["analyze", str(LOSSES), "-q", "--figure", "0", "-o", str(tmp_path / "x.svg")]
    script = f"import sys; sys.modules['kaleido'] = None; from wiretale.cli import main; sys.exit(main({words!r}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env={"PATH": "/nowhere"})
    assert done.returncode == 5 and done.stdout == "" and not (tmp_path / "x.svg").exists()
    assert re.fullmatch(r"wiretale: a picture needs a browser: run `apt-get install chromium`, or .*\n", done.stderr)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--figure", "0", "-o", "x.gif"), "x.gif: expected a picture that ends in .svg, .png or .pdf"),
        (("--figure", "0"), "--figure needs -o FILE"),
        (
            ("--figure", "0", "--figure", "1", "-o", "x.svg"),
            "2 figures and 1 picture: give one -o FILE for each --figure",
        ),
        (
            ("--figure", "0", "-o", "x.svg", "-o", "y.svg"),
            "1 figure and 2 pictures: give one -o FILE for each --figure",
        ),
        (("--figure", "0", "-o", "x.svg", "--figure", "0:rtt", "-o", "x.svg"), "x.svg: two figures cannot be one file"),
        (("--figure", "0", "--figure", "0:rtt", "-o", "{flow}.svg"), "0.svg: two figures cannot be one file"),
        (("--figure", "0:ladder", "-o", "x.svg"), "panel 'ladder': expected sequence, numbers"),
        (("-o", "x", "-o", "y"), "-o DIR: give it once"),
        (("--figure", "flow", "-o", "x.svg"), "--figure 'flow': expected FLOW or FLOW:PANEL"),
    ],
)
def test_wrong_figures_are_refused(wiretale_run: Any, words: tuple[str, ...], message: str) -> None:
    done = wiretale_run("analyze", LOSSES, *words)
    assert done.returncode == 2 and message in done.stderr and done.stderr.count("\n") == 1


def test_the_notebook_of_the_documentation_runs() -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    stored, ran = (nbformat.read(NOTEBOOK, as_version=4) for _ in range(2))
    nbclient.NotebookClient(ran, timeout=300, resources={"metadata": {"path": str(NOTEBOOK.parent)}}).execute()
    outputs = [output for cell in ran.cells for output in cell.get("outputs", [])]
    first, printed = (
        [[cell.outputs[0] for cell in book.cells if cell.get("outputs")][place] for book in (stored, ran)]
        for place in (0, 1)
    )
    assert first[0].data["text/html"] == first[1].data["text/html"] and printed[0].text == printed[1].text
    assert NOTEBOOK.stat().st_size < 200_000
    assert not [output for output in outputs if output.output_type == "error"]
    kinds = {kind for output in outputs for kind in output.get("data", {})}
    assert "text/html" in kinds and any("plotly" in kind for kind in kinds)
