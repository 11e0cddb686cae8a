# SPDX-License-Identifier: Apache-2.0
"""The packets of a flow in the report, used with mouse and keys: rows, verdicts, ladder, and the decoded frame."""

from __future__ import annotations

import json
import random
import re
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from scapy.all import IP, TCP, Ether, Raw, wrpcap

import needs
import wiretale
from placed import placed
from plain_wire import Connection, Wire
from report_page import Page, loneliest
from sample_sets import FEW_SAMPLES
from wiretale.analyzer.frames.raw_frames import raw_frames
from wiretale.reports.html import frames as report_frames

pytestmark = pytest.mark.xdist_group("report-packets")


EVIDENCE = {"acks": "ACKs", "time": "time"}
ROWS_SHOWN = 22
ROWS_MOST = 100  # rows that exist at a time
ROWS = """[...document.querySelectorAll('#packet-rows tbody tr')].map(row => ({
  frame: row.dataset.frame === undefined ? null : Number(row.dataset.frame), id: row.id,
  chosen: row.getAttribute('aria-selected') === 'true', cells: [...row.cells].map(cell => cell.textContent)}))"""
# The place of the list, once it has not moved for ten pictures.
AT_REST = """() => new Promise(done => {
  const list = document.getElementById('packet-rows');
  let top = list.scrollTop, still = 0;
  const look = () => {
    still = list.scrollTop === top ? still + 1 : 0;
    top = list.scrollTop;
    if (still < 10) return requestAnimationFrame(look);
    done({top, ended: top + list.clientHeight >= list.scrollHeight - 1});
  };
  look();
})"""


def rows_of(page: Page) -> list[dict[str, Any]]:
    """The rows that exist."""
    rows: list[dict[str, Any]] = page.page.evaluate(ROWS)
    assert len(rows) <= ROWS_MOST
    return rows


def all_rows(page: Page) -> list[dict[str, Any]]:
    """Every row of the list, seen by turning the wheel over it; each turn ends before the next, also in a slow browser."""
    page.page.evaluate("document.getElementById('packets').scrollIntoView()")
    page.page.evaluate("document.getElementById('packet-rows').scrollTop = 0")
    page.page.hover("#packet-rows tbody tr:nth-child(3)")
    by_frame: dict[str, dict[str, Any]] = {}
    for _ in range(1000):
        place = page.page.evaluate(AT_REST)
        rows = rows_of(page)
        by_frame.update(
            {
                row["id"] or f"pause before {following['id']}": row
                for row, following in zip(rows, rows[1:] + rows[-1:], strict=True)
            }
        )
        if place["ended"]:
            return list(by_frame.values())
        page.page.mouse.wheel(0, 400)
        page.page.wait_for_function("top => document.getElementById('packet-rows').scrollTop > top", arg=place["top"])
    raise AssertionError("the list has no end")


def opened_flow(page: Page, path: Path, report: Path, fragment: str = "") -> tuple[wiretale.Trace, int]:
    """Opens a report; returns its tables and the flow that it shows."""
    trace = wiretale.analyze(path)
    page.open(trace.report(report), fragment)
    if not fragment:
        page.whole_flow()
    return trace, int(page.page.evaluate("choice.flow"))


def grouped_digits(value: int | None) -> str:
    """A number as the page writes it."""
    return "" if value is None else f"{value:,}"


# --- rows


@pytest.mark.parametrize("name", ["tcp_losses.pcap", "udp_blocks.pcap", "udp_fragments.pcap", "vlan_ipv6.pcap"])
def test_rows_are_those_of_the_packets_table(page: Page, samples: Path, tmp_path: Path, name: str) -> None:
    trace, flow = opened_flow(page, samples / name, tmp_path / "report.html")
    table = trace.packets([flow]).rows()
    listed = [row for row in all_rows(page) if row["frame"] is not None]
    assert [row["frame"] for row in listed] == [row["frame"] for row in table]
    base = int(page.page.evaluate("data.base"))
    numbers = {row["last_frame"]: row["sequence"] for row in trace.blocks.rows() if row["flow"] == flow}
    for row, packet in zip(listed, table, strict=True):
        _, time, arrow, sequence, length, ack, _ = row["cells"]
        assert float(time) == pytest.approx((packet["time_ns"] - base) / 1e9, abs=1e-6)
        assert arrow == "→←"[packet["direction"]]
        assert length == (grouped_digits(packet["payload_bytes"]) if packet["payload_bytes"] else "")
        assert ack == grouped_digits(packet["acknowledged"])
        own = numbers.get(packet["frame"]) if packet["sequence"] is None else packet["sequence"]
        assert sequence in ("", grouped_digits(own)) and bool(sequence) >= bool(
            packet["payload_bytes"] and own is not None
        )
    assert page.complaints == []


@FEW_SAMPLES
@needs.TSHARK
def test_every_sample_has_rows_and_a_decoded_frame(page: Page, sample: Path, tmp_path: Path) -> None:
    trace, flow = opened_flow(page, sample, tmp_path / "report.html")
    table = trace.packets([flow]).rows()
    rows = rows_of(page)
    frames = [row["frame"] for row in rows if row["frame"]]
    assert frames == [row["frame"] for row in table][: len(frames)] and len(rows) >= min(ROWS_SHOWN, len(table))
    page.page.evaluate("document.getElementById('packets').scrollIntoView()")
    page.page.click("#packet-rows tbody tr:first-child td:nth-child(2)")
    first = table[0]["frame"]
    page.until(f"document.getElementById('h-frame').textContent === 'Frame {first}'")
    (raw,) = raw_frames(trace, [(table[0]["capture"], first)])
    assert page.page.is_visible("#frame-tree") and "Decoded by tshark" in page.page.inner_text("#frame-note")
    assert page.page.inner_text("#frame-bytes")[6:53] == raw.data[:16].hex(" ")
    page.page.click("#tab-ladder")
    page.until("location.hash.includes('tab=ladder')")
    assert page.page.locator("#ladder-rows .chosen").get_attribute("data-frame") == str(first)
    assert page.complaints == []


def test_the_range_is_that_of_the_list(page: Page, samples: Path, tmp_path: Path) -> None:
    trace, flow = opened_flow(page, samples / "tcp_losses.pcap", tmp_path / "report.html", "#flow=0&t=0.4-0.52")
    base = int(page.page.evaluate("data.base"))
    expected = [row["frame"] for row in trace.packets([flow]).rows() if 0.4e9 <= row["time_ns"] - base <= 0.52e9]
    assert [row["frame"] for row in rows_of(page) if row["frame"]] == expected
    assert page.page.inner_text("#packet-count") == f"{len(expected)} packets of 342 in range"


def test_pauses_are_named(page: Page, samples: Path, tmp_path: Path) -> None:
    opened_flow(page, samples / "tcp_losses.pcap", tmp_path / "report.html")
    texts = [row["cells"][0] for row in all_rows(page) if row["frame"] is None]
    assert "224 ms without a packet" in texts and len(texts) <= 20


def test_verdicts_are_those_of_the_events(page: Page, samples: Path, tmp_path: Path) -> None:
    trace, flow = opened_flow(page, samples / "tcp_losses.pcap", tmp_path / "report.html")
    verdicts = {row["frame"]: row["cells"][6] for row in all_rows(page) if row["frame"]}
    words = defaultdict(set)
    for event in trace.events.rows():
        if event["flow"] != flow:
            continue
        words[event["frame"]].add(event["kind"])
        if event["kind"].endswith("retransmission") and event["place"] == "downstream":
            assert f"lost downstream; retransmitted in frame {event['frame']}" in verdicts[event["related_frame"]]
            assert f"first sent in frame {event['related_frame']}, lost downstream" in verdicts[event["frame"]]
            assert f"by {EVIDENCE[event['evidence']]}" in verdicts[event["frame"]]
    assert sum("duplicate ACK" in text for text in verdicts.values()) == sum(
        "duplicate_ack" in kinds for kinds in words.values()
    )
    assert {frame for frame, text in verdicts.items() if "fast retransmission" in text} == {155}
    assert {frame for frame, text in verdicts.items() if "retransmitted by timeout" in text} == {338}
    assert verdicts[155].startswith("◆") and verdicts[338].startswith("✕") and verdicts[90].startswith("–")


def test_a_segment_that_fills_a_gap_was_not_sent_before_it(page: Page, samples: Path, tmp_path: Path) -> None:
    trace, flow = opened_flow(page, samples / "fast_retransmissions.pcap", tmp_path / "report.html", "#flow=0")
    verdicts = {row["frame"]: row["cells"][6] for row in all_rows(page) if row["frame"]}
    upstream = [event for event in trace.events.rows() if event["flow"] == flow and event["place"] == "upstream"]
    assert upstream
    for event in upstream:
        assert f"fills the gap before frame {event['related_frame']}, lost upstream" in verdicts[event["frame"]]
        assert "lost" not in verdicts[event["related_frame"]]


# --- the choice of a packet


def test_a_click_on_a_row_chooses_its_frame_and_back_undoes_it(page: Page, samples: Path, tmp_path: Path) -> None:
    opened_flow(page, samples / "tcp_losses.pcap", tmp_path / "report.html")
    page.page.evaluate("document.getElementById('packets').scrollIntoView()")
    page.page.click("#packet-rows tr[data-frame='7'] td:nth-child(5)")
    page.until("location.hash === '#flow=0&frame=7'")
    assert [row["frame"] for row in rows_of(page) if row["chosen"]] == [7]
    assert page.page.inner_text("#h-frame") == "Frame 7"
    page.page.click("#copy-frame")
    assert page.until("document.body.dataset.copied") == "frame.number == 7"
    page.page.go_back()
    page.until("!location.hash.includes('frame')")
    assert page.page.inner_text("#h-frame") == "Frame" and not any(row["chosen"] for row in rows_of(page))


def test_keys_choose_packets_and_keep_them_in_view(page: Page, samples: Path, tmp_path: Path) -> None:
    trace, flow = opened_flow(page, samples / "tcp_losses.pcap", tmp_path / "report.html", "#flow=0&frame=100")
    frames = [row["frame"] for row in trace.packets([flow]).rows()]
    page.page.focus("#packet-rows")
    at = frames.index(100)
    for key, step in [
        ("ArrowDown", 1),
        ("ArrowUp", -1),
        ("PageDown", 25),
        ("PageDown", 25),
        ("PageUp", -25),
        ("End", 999),
        ("Home", -999),
    ]:
        page.page.keyboard.press(key)
        at = min(len(frames) - 1, max(0, at + step))
        page.until(f"location.hash.endsWith('frame={frames[at]}')")
        page.until(f"document.getElementById('h-frame').textContent === 'Frame {frames[at]}'")
        row, box = (
            page.page.locator(selector).bounding_box()
            for selector in ("#packet-rows [aria-selected=true]", "#packet-rows")
        )
        assert box["y"] < row["y"] and row["y"] + row["height"] <= box["y"] + box["height"] + 1, key
        described = page.page.get_attribute("#packet-rows", "aria-activedescendant")
        assert page.page.get_attribute(f"#{described}", "data-frame") == str(frames[at])
    page.page.go_back()
    page.until("!location.hash.includes('frame=1&')")  # steps by keys are one


def test_a_click_on_a_point_of_the_plot_chooses_its_packet(page: Page, samples: Path, tmp_path: Path) -> None:
    opened_flow(page, samples / "tcp_losses.pcap", tmp_path / "report.html")
    (point,) = loneliest([point for point in page.drawn() if point.trace == "timeout_retransmission"], 1)
    page.click(point)
    page.until("location.hash.includes('frame=338')")
    assert [row["frame"] for row in rows_of(page) if row["chosen"]] == [338]
    assert page.page.inner_text("#frame-verdict").startswith("Retransmitted by timeout. First sent in frame 317")


def test_a_frame_of_the_link_that_is_not_in_the_list_is_named(page: Page, samples: Path, tmp_path: Path) -> None:
    opened_flow(page, samples / "tcp_losses.pcap", tmp_path / "report.html", "#flow=0&t=0.4-0.52&frame=5")
    assert page.page.inner_text("#packet-count").endswith("frame 5 is not among them")
    assert page.complaints == []


# --- the ladder


def test_the_ladder_has_an_arrow_for_each_packet(page: Page, samples: Path, tmp_path: Path) -> None:
    trace, flow = opened_flow(page, samples / "tcp_losses.pcap", tmp_path / "report.html", "#flow=0&t=0.4-0.52")
    page.page.click("#tab-ladder")
    page.until("location.hash.includes('tab=ladder')")
    base = int(page.page.evaluate("data.base"))
    expected = [row for row in trace.packets([flow]).rows() if 0.4e9 <= row["time_ns"] - base <= 0.52e9]
    drawn = page.page.evaluate(
        "[...document.querySelectorAll('#ladder-rows g[data-frame]')].map(g => ({frame: Number(g.dataset.frame),"
        " back: g.querySelector('line').x1.baseVal.value > g.querySelector('line').x2.baseVal.value, text: g.textContent}))"
    )
    assert [arrow["frame"] for arrow in drawn] == [row["frame"] for row in expected]
    assert [arrow["back"] for arrow in drawn] == [bool(row["direction"]) for row in expected]
    for arrow, row in zip(drawn, expected, strict=True):
        sent = (
            f"{row['sequence']:,} + {row['payload_bytes']:,}"
            if row["payload_bytes"]
            else f"ack {row['acknowledged']:,}"
        )
        assert sent in arrow["text"]
    page.page.click("#ladder-rows g[data-frame='338'] text")
    page.until("location.hash.includes('frame=338')")
    assert page.page.locator("#ladder-rows .chosen").get_attribute("data-frame") == "338"
    page.page.click("#tab-packets")
    page.until("!location.hash.includes('tab=')")
    assert [row["frame"] for row in rows_of(page) if row["chosen"]] == [338]


def test_a_lost_packet_ends_halfway(page: Page, samples: Path, tmp_path: Path) -> None:
    opened_flow(page, samples / "tcp_losses.pcap", tmp_path / "report.html", "#flow=0&frame=90&tab=ladder")
    ends = page.page.evaluate(
        "Object.fromEntries([...document.querySelectorAll('#ladder-rows g[data-frame]')].map(g =>"
        " [g.dataset.frame, [g.querySelector('line').x2.baseVal.value, Boolean(g.querySelector('path'))]]))"
    )
    sides = page.page.evaluate(
        "[...document.querySelectorAll('#ladder-rows .life')].map(line => line.x1.baseVal.value)"
    )
    assert ends["90"][1] and sides[0] < ends["90"][0] < sides[1]
    assert {round(end) for frame, (end, lost) in ends.items() if not lost} <= {round(side) for side in sides}


# --- the frame


@needs.TSHARK
def test_the_tree_has_the_values_of_tshark_and_marks_their_bytes(page: Page, samples: Path, tmp_path: Path) -> None:
    path = samples / "tcp_losses.pcap"
    opened_flow(page, path, tmp_path / "report.html", "#flow=0&frame=155")
    fields = ["ip.ttl", "ip.id", "tcp.seq", "tcp.ack", "tcp.window_size", "tcp.options.timestamp.tsval"]
    command = [
        "tshark",
        "-n",
        "-r",
        str(path),
        "-Y",
        "frame.number == 155",
        "-T",
        "fields",
        *(word for field in fields for word in ("-e", field)),
    ]
    values = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout.strip().split("\t")
    texts = page.page.evaluate("[...document.querySelectorAll('#frame-tree span')].map(span => span.textContent)")
    forms = (
        "Time to Live: {}",
        "Identification: {} (8562)",
        "Sequence Number: {} (relative sequence number)",
        "Acknowledgment Number: {} (relative ack number)",
        "Calculated window size: {}",
        "Timestamp value: {}",
    )
    for form, value in zip(forms, values, strict=True):
        assert any(form.format(value) == text for text in texts), form.format(value)
    page.page.evaluate("document.getElementById('packets').scrollIntoView()")
    page.page.click("#frame-tree span:text-is('Destination Port: 5201')")
    assert page.page.locator("#frame-bytes mark").first.inner_text().split() == ["14", "51"]
    page.page.keyboard.press("ArrowUp")
    assert page.page.locator("#frame-bytes mark").first.inner_text().split() == ["9c", "ae"]
    page.page.keyboard.press("ArrowLeft")
    page.page.keyboard.press("ArrowLeft")
    assert page.page.locator("#frame-tree [aria-selected=true]").get_attribute("aria-expanded") == "false"
    assert page.complaints == []


@needs.TSHARK
def test_the_bytes_are_those_of_the_frame(page: Page, samples: Path, tmp_path: Path) -> None:
    path = samples / "tcp_losses.pcap"
    opened_flow(page, path, tmp_path / "report.html", "#flow=0&frame=338")
    hexadecimal = re.findall(r"^[0-9a-f]{4}  ((?:[0-9a-f]{2} )+)", page.page.inner_text("#frame-bytes"), re.MULTILINE)
    (frame,) = wiretale.analyzer._core.frames([str(path)], [338], 100_000)
    assert frame and frame[1] and bytes.fromhex("".join(hexadecimal)) == frame[1][3]
    assert "330 bytes, 96 captured" in page.page.inner_text("#frame-note")


@needs.TSHARK
def test_text_of_the_capture_stays_text(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "hostile.pcap"
    request = (
        b"GET /</script><script>document.title='owned'</script><img src=x onerror=alert(1)> HTTP/1.1\r\nHost: a\r\n\r\n"
    )
    wrpcap(str(path), [Ether() / IP(src="10.0.0.1", dst="10.0.0.2") / TCP(dport=80, flags="PA") / Raw(request)])
    opened_flow(page, path, tmp_path / "report.html", "#flow=0&frame=1")
    assert "<script>" in page.page.evaluate("document.getElementById('frame-tree').textContent")
    assert page.page.evaluate("document.querySelectorAll('#packets img, #packets script').length") == 0
    assert page.page.title() != "owned" and page.complaints == []
    assert all(url.startswith(("file:", "data:", "blob:")) for url in page.requests)


def test_without_tshark_the_page_says_so_and_shows_bytes(
    page: Page, samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wiretale.analyzer.verify.tshark.shutil.which", lambda name: None)
    opened_flow(page, samples / "tcp_losses.pcap", tmp_path / "report.html", "#flow=0&frame=155")
    assert "made without tshark" in page.page.inner_text("#frame-note")
    assert page.page.is_visible("#frame-bytes") and not page.page.is_visible("#frame-tree")
    facts = page.page.inner_text("#frame-facts")
    assert "101,360 to 102,808" in facts and "192.0.2.10:40110" in facts
    assert "s since 2026-01-15 12:00:00Z" in facts
    for base, text in (("1768478400062500000", "12:00:00.0625Z"), ("1768478400000000001", "12:00:00.000000001Z")):
        assert page.page.evaluate(f"(data.base = '{base}', baseText())") == f"2026-01-15 {text}"


def test_a_frame_that_is_not_in_the_page_has_its_command(
    page: Page, samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_frames, "FRAMES_MAX", 5)
    path = samples / "tcp_losses.pcap"
    opened_flow(page, path, tmp_path / "report.html", "#flow=0&frame=200")
    assert "has the bytes of 5 frames" in page.page.inner_text("#frame-note")
    assert not page.page.is_visible("#frame-bytes") and page.page.is_visible("#frame-facts")
    page.page.click("#copy-cut")
    assert page.until("document.body.dataset.copied") == f"wiretale cut {path.name} -o frame-200.pcapng --frames 200"


def test_a_report_of_standard_input_has_no_bytes(samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = wiretale.analyze(samples / "tcp_losses.pcap", keep_packets=True)
    monkeypatch.setattr(trace, "_lasting", False)
    made = report_frames.frame_data(trace, trace.packets([0]), 0, served=False)
    assert made["list"] == [] and "second time" in made["reason"]


def test_evidence_of_findings_is_among_the_frames(samples: Path) -> None:
    trace = wiretale.analyze(samples / "fast_retransmissions.pcap")
    cited = report_frames.cited(trace, trace.packets())
    assert len(cited) == len(set(cited)) == report_frames.FRAMES_MAX
    for row in placed(trace):
        if row["first_frame"] is not None:
            assert {(row["capture"], row["first_frame"]), (row["capture"], row["last_frame"])} <= set(cited), row[
                "code"
            ]


@needs.TSHARK
def test_frames_take_a_bounded_part_of_the_page(tmp_path: Path) -> None:
    payloads = random.Random(7)
    packets = [Ether() / IP(src="10.0.0.1", dst="10.0.0.2") / TCP(seq=9000 * n, flags="A") for n in range(200)]
    wrpcap(str(tmp_path / "a.pcap"), [packet / Raw(payloads.randbytes(8960)) for packet in packets])
    made = report_frames.frame_data(wiretale.analyze(tmp_path / "a.pcap"), None, 0, served=False)
    assert len(made["list"]) == made["decoded"] == 200
    assert {(entry["length"], entry["captured"], entry["kept"]) for entry in made["list"]} == {
        (9014, 9014, report_frames.BYTES_KEPT)
    }
    assert len(json.dumps(made)) < 1_500_000


def test_trees_that_are_too_large_are_fewer() -> None:
    trees = [[[f"{number} {random.Random(number).randbytes(100).hex()}", 0, 0]] for number in range(64)]
    fitting, text = report_frames.fitting_trees(trees, 2500)
    assert fitting == trees[: len(fitting)] and 0 < len(fitting) < 64 and len(text) <= 2500


# --- a million packets


def test_a_million_packets_scroll_and_fit_the_page(page: Page, tmp_path: Path) -> None:
    count = 1_000_000
    talk = Connection(Wire())
    for number in range(count):
        talk.data(number * 0.012 + (number * 7919 % 97) / 10_000, 100 * number, 100)
    path = talk.wire.write(tmp_path / "million.pcap")
    report = wiretale.analyze(path).report(tmp_path / "report.html")
    assert report.stat().st_size < 6_000_000
    page.open(report, "#flow=0")
    page.page.evaluate("document.getElementById('packets').scrollIntoView()")
    assert rows_of(page)[0]["frame"] == 1
    page.page.focus("#packet-rows")
    page.page.keyboard.press("End")
    page.until(f"location.hash.endsWith('frame={count}')")
    assert rows_of(page)[-1]["frame"] == count
    page.page.evaluate(
        "document.getElementById('packet-rows').scrollTop = document.getElementById('packet-rows').scrollHeight / 2"
    )
    page.until("Math.abs(Number(document.querySelector('#packet-rows tbody tr').dataset.frame) - 500000) < 5000", 10)
    frames = [row["frame"] for row in rows_of(page)]
    assert frames == list(range(frames[0], frames[0] + len(frames)))
    page.page.click("#packet-rows tbody tr:nth-child(5)")
    page.until(f"location.hash.endsWith('frame={frames[4]}')")
    assert page.page.inner_text("#h-frame") == f"Frame {frames[4]}" and page.complaints == []
