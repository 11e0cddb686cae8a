# SPDX-License-Identifier: Apache-2.0
"""The columns of findings, and the tables of their frames and flows, against captures of a known truth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scapy.all import DNS, DNSQR, IP, UDP

import wiretale
from checkout import CAPTURES, SAMPLES
from crafted import ether, write_timed
from finding_captures import names
from plain_wire import SYN, Connection, Wire, syn_options
from transfer_wires import port_scan

FILES = [*CAPTURES, *sorted((SAMPLES / "findings").iterdir())]
MS = 1_000_000


def of_code(path: Path, code: str) -> dict[str, Any]:
    return next(row for row in wiretale.analyze(path).findings.rows() if row["code"] == code)


@pytest.mark.parametrize(
    ("name", "code", "column", "value"),
    [  # sample_pcaps/generator and finding_captures.py write each of these
        ("go_back_n.pcap", "timeout-stalls", "waited_ns", 250 * MS),
        ("lost_tail.pcap", "timeout-stalls", "waited_ns", 310_010_000),
        ("findings/tls-handshake-slow.pcap.gz", "tls-handshake-slow", "waited_ns", 1_201 * MS),
        ("findings/slow-server.pcap.gz", "slow-server", "waited_ns", 4_800 * MS),  # six answers of 800 ms
        ("go_back_n.pcap", "timeout-stalls", "saving_ns", 250 * MS),
        ("findings/slow-server.pcap.gz", "slow-server", "saving_ns", 4_800 * MS),
        ("tcp_losses.pcap", "lost-downstream", "saving_ns", None),  # no packet shows how fast it would have been
        ("findings/bufferbloat.pcap.gz", "bufferbloat", "waited_ns", None),  # the delay of a packet
        ("findings/path-limited.pcap.gz", "path-limited", "waited_ns", None),  # how a healthy transfer works
        ("findings/unfair-share.pcap.gz", "unfair-share", "waited_ns", None),
        ("findings/scan.pcap.gz", "scan", "failed", 27),
        ("findings/dns-unanswered.pcap.gz", "dns-unanswered", "failed", 1),
        ("findings/dns-failed.pcap.gz", "dns-failed", "failed", 2),
        ("findings/tls-alert.pcap.gz", "tls-alert", "failed", 1),
        ("tcp_losses.pcap", "lost-downstream", "failed", None),
        ("udp_fragments.pcap", "datagram-incomplete", "bytes", 6_720),
        ("tcp_losses.pcap", "timeout-stalls", "bytes", None),
        ("findings/scan.pcap.gz", "scan", "members", 30),
        ("findings/unfair-share.pcap.gz", "unfair-share", "members", 2),
        ("capture_drops.pcapng", "capture-dropped", "members", None),
        ("tcp_losses.pcap", "lost-downstream", "packets", 2),
    ],
)
def test_columns_of_a_known_truth(samples: Path, name: str, code: str, column: str, value: int | None) -> None:
    assert of_code(samples / name, code)[column] == pytest.approx(value, abs=20_000)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_wait_is_no_longer_than_the_life_of_its_flow(path: Path) -> None:
    trace = wiretale.analyze(path)
    for row in trace.findings:
        if row["waited_ns"] is not None and row["flow"] is not None:
            flow = trace.flows[row["flow"]]
            assert flow["first_ns"] is not None and flow["last_ns"] is not None
            assert 0 < row["waited_ns"] <= flow["last_ns"] - flow["first_ns"], row["code"]
        if row["headline"] != row["sentence"]:
            assert len(row["headline"]) <= max(110, len(row["sentence"])), row["headline"]


def test_waits_that_overlap_count_once(tmp_path: Path) -> None:
    """Two clients wait for an answer each from 1 s on, one for 2 s and one for 3 s."""
    packets = []
    for number, seconds in ((1, 2.0), (2, 3.0)):
        ends = {"src": f"10.0.0.{number}", "dst": "10.0.0.53"}
        question = DNSQR(qname=f"{number}.example")
        packets.append((1.0, ether(IP(**ends) / UDP(sport=4000, dport=53) / DNS(id=number, rd=1, qd=question))))
        back = IP(src=ends["dst"], dst=ends["src"]) / UDP(sport=53, dport=4000)
        packets.append((1.0 + seconds, ether(back / DNS(id=number, qr=1, qd=question))))
    row = of_code(write_timed(tmp_path / "dns.pcap", sorted(packets, key=lambda packet: packet[0])), "dns-slow")
    assert row["cost"] == pytest.approx(5.0) and row["waited_ns"] == pytest.approx(3_000 * MS, abs=1000)


def test_handshakes_that_wait_at_once_count_once(tmp_path: Path) -> None:
    wire = Wire()
    for port, began in ((40000, 0.0), (40001, 500.0)):
        retried = Connection(wire, port)
        for ms in (began, began + 1000):
            retried.send(ms, 0, -1, flags=SYN, options=syn_options())
        retried.open(ms=began + 3000).data(began + 3100, 0, 100)
    row = of_code(wire.write(tmp_path / "syns.pcap"), "syn-lost")
    assert row["members"] == 2 and row["cost"] == pytest.approx(6.0, abs=1e-3)
    assert row["waited_ns"] == pytest.approx(3_500 * MS, abs=MS)


def test_an_effect_has_the_number_of_its_cause(samples: Path) -> None:
    rows = {row["code"]: row for row in wiretale.analyze(samples / "tcp_losses.pcap").findings.rows()}
    cause, effect = rows["lost-downstream"], rows["timeout-stalls"]
    assert effect["explained_by"] == cause["finding"] < effect["finding"] and cause["explained_by"] is None


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_numbers_of_the_tables_agree(path: Path) -> None:
    trace = wiretale.analyze(path)
    findings, captures, flows = trace.findings.rows(), len(trace.interfaces), len(trace.flows)
    numbers = [row["finding"] for row in findings]
    assert numbers == [*range(1, len(findings) + 1)]
    assert {row["finding"] for row in trace.finding_frames} <= {*numbers}
    assert all(0 <= row["capture"] < captures and row["frame"] >= 1 for row in trace.finding_frames)
    assert {row["explained_by"] for row in findings} <= {None, *numbers}
    assert all(0 <= row["flow"] < flows for row in trace.finding_flows)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_flows_of_the_tables_agree(path: Path) -> None:
    trace = wiretale.analyze(path)
    for row in trace.findings:
        sides = [side for side in trace.finding_flows if side["finding"] == row["finding"]]
        if row["flow"] is not None:
            assert {side["flow"] for side in sides} == {row["flow"]} and row["members"] is not None
        if row["direction"] is not None:
            assert [side["direction"] for side in sides] == [row["direction"]]


def test_sql_joins_findings_with_frames_files_and_flows(samples: Path) -> None:
    trace = wiretale.analyze(samples / "tcp_losses.pcap", samples / "udp_blocks.pcap")
    sql = """SELECT code, parse_filename(file), frame FROM findings JOIN finding_frames USING (finding)
        JOIN interfaces USING (capture) WHERE role = 'retransmission' AND code = 'lost-downstream' ORDER BY frame"""
    assert trace.query(sql).fetchall() == [("lost-downstream", "tcp_losses.pcap", frame) for frame in (155, 338)]
    sql = "SELECT DISTINCT source FROM findings JOIN finding_flows USING (finding, flow) JOIN flows USING (flow)"
    assert len(trace.query(sql).fetchall()) == 2


def test_json_has_the_tables_of_findings(wiretale_run: Any, samples: Path) -> None:
    trace = wiretale.analyze(samples / "tcp_losses.pcap")
    made = json.loads(wiretale_run("analyze", samples / "tcp_losses.pcap", "--json").stdout)
    assert made["schema"] == "wiretale.analyze/3"
    assert made["finding_frames"] == trace.finding_frames.rows() and made["finding_flows"] == trace.finding_flows.rows()
    explained = json.loads(wiretale_run("analyze", samples / "tcp_losses.pcap", "--all", "--json").stdout)["findings"][
        0
    ]
    assert explained["flows"] == [{"flow": 0, "direction": 0}]
    assert {"capture": 0, "frame": 155, "role": "retransmission"} in explained["frames"]


def test_a_scan_has_the_ends_that_answered_and_its_flows(tmp_path: Path) -> None:
    trace = wiretale.analyze(port_scan(300).write(tmp_path / "scan.pcap"))
    (row,) = trace.findings.rows()
    assert (row["members"], row["failed"]) == (300, 297)
    assert trace.finding_flows.column("flow") == [*range(300)]


def test_names_are_asked_by_several_flows(tmp_path: Path) -> None:
    trace = wiretale.analyze(write_timed(tmp_path / "dns.pcap", sorted(names(0.4, 1.2), key=lambda packet: packet[0])))
    (row,) = [row for row in trace.findings if row["code"] == "dns-slow"]
    roles = {packet["role"] for packet in trace.finding_frames if packet["finding"] == row["finding"]}
    assert row["members"] == 2 and row["flow"] is None and roles == {"first", "last", "response"}
