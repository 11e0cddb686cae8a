# SPDX-License-Identifier: Apache-2.0
"""Flows that lose together at one queue are one finding; those that lose at other places or times are not."""

from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from scapy.all import IP, TCP, Ether, wrpcap

import needs
import wiretale
from crafted import NEIGHBOR
from one_queue import FRAME, Flow, each_alone, each_own_queue, run, through_one_queue
from one_queue import Path as Link
from placed import placed
from plain_wire import Wire
from wiretale.analyzer.findings.evidence import evidence_of
from wiretale.analyzer.units import show_share

Row = dict[str, Any]
RATE, ROOM, SECONDS = 20e6, 60, 12.0
FULL_MS = ROOM * FRAME * 8 / RATE * 1000
OWN_LOSSES = {"lost-downstream", "lost-upstream", "loss-pattern", "loss-limited-window", "recovery-limited"}


def findings(wire: Wire, folder: Path) -> list[Row]:
    return placed(wiretale.analyze(wire.write(folder / "wire.pcap")))


def shared(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["code"] == "shared-queue"]


def sentence_figures(row: Row) -> tuple[int, int, int]:
    """Flows, losses and episodes of a sentence."""
    matched = re.match(r"(\d+) flows lose together .*?: ([\d,]+) segments \(.*?\) in (\d+) episodes", row["sentence"])
    assert matched, row["sentence"]
    flows, losses, episodes = (int(text.replace(",", "")) for text in matched.groups())
    return flows, losses, episodes


def lost(flows: list[Flow]) -> int:
    return sum(flow.dropped for flow in flows)


@pytest.mark.parametrize("count", [2, 6, 12])
def test_flows_that_share_a_full_queue_are_one_finding(tmp_path: Path, count: int) -> None:
    wire, flows = through_one_queue(count, RATE, ROOM, SECONDS)
    rows = findings(wire, tmp_path)
    (row,) = shared(rows)
    assert (
        sentence_figures(row)[:2] == (count, lost(flows)) and "lose together after the capture point" in row["sentence"]
    )
    sent = sum(len(frame) > 1000 for _, frame in wire.packets)
    assert f"segments ({show_share(lost(flows), sent)}) in" in row["sentence"]
    rate = re.search(r"They pass ([\d.]+) Mbit/s on the wire through it", row["sentence"])
    assert rate and float(rate[1]) == pytest.approx(RATE / 1e6, rel=0.02)
    delay = re.search(r"Tail drop: .* delays by ([\d.]+) ms when it is full", row["sentence"])
    assert delay and float(delay[1]) == pytest.approx(FULL_MS, rel=0.05)
    assert not OWN_LOSSES & {each["code"] for each in rows}
    assert row["flow"] is None and row["severity"] == "warning" and row["cost_unit"] == "seconds"
    spent = sum(
        (each["time_loss_ns"] or 0)
        + (each["suspected_ns"] or 0)  # the bottleneck was idle: else it carried what it can
        for each in wiretale.analyze(tmp_path / "wire.pcap").directions.rows()
        if each["lost_downstream"]
    )
    assert row["cost"] == pytest.approx(spent / 1e9, rel=0.02)


def test_a_finding_has_the_flows_that_share_the_queue(tmp_path: Path) -> None:
    wire, flows = through_one_queue(4, RATE, ROOM, SECONDS)
    trace = wiretale.analyze(wire.write(tmp_path / "wire.pcap"))
    members_of = {
        row["code"]: [side["flow"] for side in evidence.flows]
        for row, evidence in zip(trace.findings.rows(), evidence_of(trace), strict=True)
    }
    members = members_of["shared-queue"]
    assert sorted(members) == [0, 1, 2, 3]
    dropped = [flows[number].dropped for number in members]
    assert dropped == sorted(dropped, reverse=True)
    single = {row["code"]: row["flow"] for row in trace.findings.rows() if row["flow"] is not None}
    assert single and all(members_of[code] == [flow] for code, flow in single.items())


def test_a_finding_has_all_its_flows_and_its_evidence_200(tmp_path: Path) -> None:
    syns = [
        Ether(dst=NEIGHBOR) / IP(src="10.0.0.1", dst="10.0.0.2") / TCP(sport=1000 + n, dport=80) for n in range(300)
    ]
    for n, syn in enumerate(syns):
        syn.time = 1_700_000_000 + n
    wrpcap(str(tmp_path / "syns.pcap"), syns)
    trace = wiretale.analyze(tmp_path / "syns.pcap")
    (row,) = trace.findings.rows()
    assert trace.finding_flows.column("flow") == [*range(300)] and row["members"] == 300
    (evidence,) = evidence_of(trace)
    assert [side["flow"] for side in evidence.flows] == [*range(200)]


def test_the_capture_point_may_be_behind_the_queue(tmp_path: Path) -> None:
    wire, flows = through_one_queue(2, RATE, ROOM, SECONDS, behind=True)
    rows = findings(wire, tmp_path)
    (row,) = shared(rows)
    assert sentence_figures(row)[:2] == (2, lost(flows)) and "lose together before the capture point" in row["sentence"]
    assert "cannot be seen after it" in row["sentence"] and "pass up to 20 Mbit/s" in row["sentence"]
    assert not OWN_LOSSES & {each["code"] for each in rows}


def test_the_evidence_is_the_lost_segments(tmp_path: Path) -> None:
    wire, _ = through_one_queue(2, RATE, ROOM, SECONDS)
    (row,) = shared(findings(wire, tmp_path))
    trace = wiretale.analyze(tmp_path / "wire.pcap")
    first = {each["related_frame"] for each in trace.events.rows() if each["place"] == "downstream"}
    frames = [int(frame) for frame in re.findall(r"\d+", row["filter"])]
    assert set(frames) <= first and frames == sorted(first)[:50]
    assert row["evidence"].startswith(f"frames {', '.join(map(str, frames[:5]))} and {len(first) - 5:,} more; flow ")
    needs.skip_without(needs.programs("tshark"))
    command = [
        "tshark",
        "-n",
        "-r",
        str(tmp_path / "wire.pcap"),
        "-Y",
        row["filter"],
        "-T",
        "fields",
        "-e",
        "frame.number",
    ]
    tshark = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert [int(line) for line in tshark.stdout.split()] == frames


@pytest.mark.parametrize("count", [2, 6])
@pytest.mark.parametrize("paths", [each_alone, each_own_queue])
def test_flows_on_paths_of_their_own_are_not_grouped(tmp_path: Path, paths: Any, count: int) -> None:
    """Random losses, or full queues that each flow has for itself."""
    wire, flows = paths(count, RATE, 0.004 if paths is each_alone else ROOM, SECONDS)
    assert min(flow.dropped for flow in flows) >= 10
    rows = findings(wire, tmp_path)
    assert not shared(rows) and "lost-downstream" in {row["code"] for row in rows}


def together(*wires: Wire) -> Wire:
    return Wire([packet for wire in wires for packet in wire.packets], by_time=True)


def test_two_queues_are_two_findings_and_a_flow_alone_is_in_neither(tmp_path: Path) -> None:
    first, some = through_one_queue(4, RATE, ROOM, SECONDS)
    second, more = through_one_queue(5, 11e6, 40, SECONDS, net=2)
    lonely, single = each_alone(1, RATE, 0.004, SECONDS, net=3)
    rows = findings(together(first, second, lonely), tmp_path)
    assert sorted(sentence_figures(row)[:2] for row in shared(rows)) == [(4, lost(some)), (5, lost(more))]
    for row in shared(rows):
        nets = set(re.findall(r"flow \d+ 10\.(\d)\.", row["evidence"]))
        assert nets == ({"1"} if sentence_figures(row)[0] == 4 else {"2"})
    (alone,) = (row for row in rows if row["code"] == "lost-downstream")
    assert f"10.3.1.1:40000 → 10.3.2.1:80 lost {lost(single)} of" in alone["sentence"]


@pytest.mark.parametrize("same", [True, False])
def test_an_outage_of_one_path_is_one_finding(tmp_path: Path, same: bool) -> None:
    """Flows with small windows lose only while their path is out: all at the same times, or each at times of its own."""
    draw = random.Random(4)
    times = [tuple((at, at + 30.0) for at in sorted(draw.uniform(1000, 11000) for _ in range(4))) for _ in range(6)]
    links = [Link(50e6, 10**6, outages=times[0 if same else i]) for i in range(6)]
    wire, flows = run(links, [20.0] * 6, SECONDS, most=12)
    assert min(flow.dropped for flow in flows) >= 3
    rows = findings(wire, tmp_path)
    if not same:
        assert not shared(rows)
        return
    (row,) = shared(rows)
    assert sentence_figures(row) == (6, lost(flows), 4)
    assert "No queue: the RTT stays below" in row["sentence"] and "a link that fades or fails" in row["sentence"]
