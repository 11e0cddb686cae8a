# SPDX-License-Identifier: Apache-2.0
"""The place of a finding's evidence: frames that exist, of the flow that it names, at their times in the capture."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import wiretale
from checkout import CAPTURES, SAMPLES
from placed import placed
from transfer_wires import growing_flights
from tshark_fields import times_of
from wiretale.analyzer.findings.registry import RULES

FILES = [*CAPTURES, *sorted((SAMPLES / "findings").iterdir())]
PLACE = ("cited_flow", "capture", "first_frame", "last_frame", "first_ns", "last_ns")
OF_HOSTS = {"arp-unanswered", "duplicate-address", "dhcp-no-offer", "dhcp-refused"}  # without a flow
UNTIMED = {"time-unknown", "time-out-of-range"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_evidence_is_at_its_frames_and_times(path: Path) -> None:
    trace = wiretale.analyze(path)
    packets = {(row["capture"], row["frame"]): row for row in trace.packets(range(len(trace.flows))).rows()}
    for row in placed(trace):
        code, first, last = row["code"], row["first_frame"], row["last_frame"]
        if first is None:
            assert row["scope"] == "capture" and RULES[code].without_packets, code
            assert [row[name] for name in PLACE] == [None] * len(PLACE)
        elif row["cited_flow"] is None:
            assert code in OF_HOSTS or (row["scope"] == "capture" and first == last), code
            times = {} if code in UNTIMED else times_of(path, [first, last])
            assert 0 < first <= last, code
            assert (row["first_ns"], row["last_ns"]) == (times.get(first), times.get(last)), code
        else:
            assert_within_its_flow(row, packets, trace.flows)


def assert_within_its_flow(row: dict[str, Any], packets: dict[tuple[int, int], Any], flows: Any) -> None:
    """A finding about one flow cites that one, or an ICMP error about it; it is about all of it only if its rule says why."""
    code, flow, frames = row["code"], flows[row["cited_flow"]], (row["first_frame"], row["last_frame"])
    ends = [packets[row["capture"], frame] for frame in frames]
    of_error = flows[ends[0]["flow"]]["protocol"] in ("icmp", "icmpv6")
    assert row["flow"] in (None, row["cited_flow"])
    assert flow["first_frame"] <= frames[0] <= frames[1] <= flow["last_frame"] or of_error, code
    for end, packet in zip(("first", "last"), ends, strict=True):
        assert packet["time_ns"] == row[f"{end}_ns"], (code, end)
        assert packet["flow"] == row["cited_flow"] or of_error, (code, end)
    if not RULES[code].without_packets and flow["packets"] > 2:
        assert row["named"] or frames != (flow["first_frame"], flow["last_frame"]), code


@pytest.mark.parametrize(
    ("name", "code", "frames", "took_ns"),
    [  # sample_pcaps/generator writes each of these at a known time
        ("go_back_n.pcap", "timeout-stalls", (54, 59), 250_000_000),
        ("vxlan_loss.pcap", "lost-upstream", (203, 203), 0),
        ("lost_tail.pcap", "timeout-stalls", (37, 39), 310_010_000),
        ("network_duplicate.pcap", "network-duplicates", (39, 39), 0),
        ("udp_fragments.pcap", "datagram-incomplete", (25, 29), None),
        ("findings/jitter.pcap.gz", "jitter", (114, 114), 0),
        ("findings/tls-alert.pcap.gz", "tls-alert", (5, 5), 0),
        ("findings/ecn-ignored.pcap.gz", "ecn-ignored", (9, 9), 0),  # the sixth data segment has the mark
        ("findings/ecn-ignored.pcap.gz", "congestion-marks", (9, 9), 0),
    ],
)
def test_evidence_of_a_known_truth(
    samples: Path, name: str, code: str, frames: tuple[int, int], took_ns: int | None
) -> None:
    (row,) = [row for row in placed(wiretale.analyze(samples / name)) if row["code"] == code]
    assert (row["first_frame"], row["last_frame"]) == frames
    assert took_ns in (None, row["last_ns"] - row["first_ns"])


@pytest.mark.parametrize("flights", [(1, 2, 4, 8, 1, 1), (2, 4, 8, 16, 1), (10, 20, 40, 80, 10)])
def test_slow_start_ends_with_the_data_that_doubled_the_flight(tmp_path: Path, flights: tuple[int, ...]) -> None:
    """Also of the directions with fewer than 32 packets, for which little state is kept."""
    trace = wiretale.analyze(growing_flights(flights).write(tmp_path / "growing.pcap"))
    (row,) = [row for row in placed(trace) if row["code"] == "slow-start"]
    data = [packet for packet in trace.packets([0]).rows() if packet["payload_bytes"]]
    before = sum(flights[: flights.index(max(flights))])
    flight = data[before : before + max(flights)]  # the largest: bytes in flight last doubled within it
    assert row["first_frame"] == 1
    assert flight[0]["frame"] <= row["last_frame"] <= flight[-1]["frame"]
    assert row["last_ns"] == next(packet["time_ns"] for packet in data if packet["frame"] == row["last_frame"])


def test_frames_of_several_files_do_not_make_one_place(samples: Path) -> None:
    trace = wiretale.analyze(*(samples / name for name in ("tcp_losses.pcap", "udp_blocks.pcap", "timeouts.pcap")))
    packets = {(row["capture"], row["frame"]): row for row in trace.packets(range(len(trace.flows))).rows()}
    places = [
        (row["capture"], row[f"{end}_frame"], row[f"{end}_ns"]) for row in placed(trace) for end in ("first", "last")
    ]
    assert len({capture for capture, frame, _ in places if frame is not None}) == 3
    for capture, frame, time_ns in places:
        assert frame is None or packets[capture, frame]["time_ns"] == time_ns


def test_frames_of_rotated_files_are_named_with_their_file(wiretale_run: Any, samples: Path, tmp_path: Path) -> None:
    capture, each = samples / "tcp_losses.pcap", 60
    data, folder = capture.read_bytes(), tmp_path / "rotated"
    folder.mkdir()
    packets, place = [], 24
    while place < len(data):
        length = 16 + int.from_bytes(data[place + 8 : place + 12], "little")
        packets.append(data[place : place + length])
        place += length
    for number, first in enumerate(range(0, len(packets), each)):
        (folder / f"{number}.pcap").write_bytes(data[:24] + b"".join(packets[first : first + each]))
    rows_of = {}
    for path in (capture, folder):
        rows = json.loads(wiretale_run("analyze", path, "--all", "--json").stdout)["findings"]
        rows_of[path] = next(row for row in rows if row["code"] == "lost-downstream")
    texts = re.findall(r"([\d, ]+) of (\d)\.pcap", rows_of[folder]["evidence"])
    frames = [each * int(file) + int(frame) for text, file in texts for frame in text.split(", ")]
    assert [*map(int, re.findall(r"\d+", rows_of[capture]["evidence"]))] == frames and len(texts) > 1
    assert "frame.number" in rows_of[capture]["filter"] and "frame.number" not in rows_of[folder]["filter"]
    output = wiretale_run("analyze", folder, "--all").stdout
    assert rows_of[folder]["evidence"] in output
