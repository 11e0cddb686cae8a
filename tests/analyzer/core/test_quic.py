# SPDX-License-Identifier: Apache-2.0
"""QUIC in captures of others, beside the round trips that spindump prints and the fields that tshark decrypts."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import needs
import wiretale

US = 3  # rounding, and two packets of one flight
Ports = tuple[int, int]

SPINDUMP = sorted((needs.ROOT.parent / "shared/labelled/spindump").glob("trace_quic_*.pcap*"))
SPINDUMP_FILES = needs.shared_files("labelled/spindump", "trace_quic_*.pcap*")
TCPDUMP_FILES = needs.shared_files("captures/tcpdump-tests", "quic*.pcap")

TWICE = "the client repeated its Initial before the answer, which may answer either; spindump takes the latest"
LEAST = "the Retry came sooner after its Initial than the ServerHello, and wiretale takes the least"
FLIGHT = "the ClientHello is a flight of several datagrams; spindump takes the last of them, wiretale the first"
# Flows in which spindump has another round trip to the server than wiretale, by the client's port.
EXCEPTIONS: dict[str, dict[int, str]] = {
    "trace_quic_rfc_quant_long_qlog": {49702: TWICE},
    "trace_quic_v23_aiortc": {58778: TWICE},
    "trace_quic_v23_ats_readdr": {54753: TWICE},
    "trace_quic_v23_pandora": {61794: LEAST},
    "trace_quic_v25_haskell": {52909: LEAST, 57693: LEAST, 53392: LEAST},
    "trace_quic_v25_ngtcp2": {50972: FLIGHT},
}
# RTTs by the spin bit, microseconds: in these flows both sides spin for at least two edges.
SPINNING = {
    ("trace_quic_v18_long_spin_all", 55782): 17171,
    ("trace_quic_v22_quant_long", 63595): 113072,
    ("trace_quic_v25_quant_long", 62179): 34692,
}
FULL = re.compile(r'measurement up full \(\w+\) (\d+)|"Full_rtt_\w+": (\d+)')
TEXTS = (
    re.compile(r"\((\d+):(\d+)\) at \d+ measurement (?:up|starting) (left|right) (\d+)"),
    re.compile(r'\((\d+):(\d+)\)".*"(Left|Right)_rtt": (\d+)'),
)


def expected_trips(path: Path) -> dict[Ports, dict[str, list[int]]]:
    """Round trips in microseconds to the server (right) and to the client (left), by the ports of a connection."""
    trips: dict[Ports, dict[str, list[int]]] = defaultdict(lambda: {"left": [], "right": []})
    ports = (0, 0)
    for line in path.with_suffix(".expected").read_text().splitlines():
        if qlog := re.search(r'"src_port": "(\d+)", "dst_port": "(\d+)"', line):
            ports = (int(qlog[1]), int(qlog[2]))
        if trip := re.search(r'"(left|right)_rtt": (\d+)', line):
            trips[ports][trip[1]].append(int(trip[2]))
        for text in TEXTS:
            for match in text.finditer(line):
                trips[int(match[1]), int(match[2])][match[3].lower()].append(int(match[4]))
    return trips


def handshakes(path: Path) -> dict[Ports, dict[str, Any]]:
    """Rows of handshakes of QUIC, with those of their flows, by the ports of the flow."""
    trace = wiretale.analyze(path)
    flows = trace.flows.rows()
    rows = [{**flows[row["flow"]], **row} for row in trace.handshakes.rows() if row["protocol"] == "quic"]
    return {(row["source_port"], row["destination_port"]): row for row in rows}


def in_us(ns: int | None) -> int | None:
    return None if ns is None else ns // 1000


def is_near(ns: int | None, expected: list[int]) -> bool:
    return ns is not None and any(abs(ns / 1000 - us) <= US for us in expected)


def test_captures_of_others_are_present() -> None:
    needs.shared("labelled/spindump")
    assert len(SPINDUMP) == 38


@pytest.mark.parametrize("path", SPINDUMP_FILES, ids=lambda path: path.stem)
def test_round_trips_are_those_of_spindump(path: Path) -> None:
    """The round trip to the server, and that to the client if the server refused the first Initial."""
    exceptions = EXCEPTIONS.get(path.stem, {})
    rows, expected = handshakes(path), expected_trips(path)
    different = {
        ports[0]: (in_us(rows[ports]["server_rtt_ns"]) if ports in rows else "no flow", trips["right"])
        for ports, trips in expected.items()
        if trips["right"] and not (ports in rows and is_near(rows[ports]["server_rtt_ns"], trips["right"]))
    }
    assert sorted(different) == sorted(exceptions), different
    for ports, trips in expected.items():
        refused = ports in rows and (rows[ports]["retry"] or rows[ports]["version_negotiation"])
        if refused and ports[0] not in exceptions:
            client_ns = rows[ports]["client_rtt_ns"]
            assert is_near(client_ns, trips["left"]) or client_ns / 1000 < min(trips["left"])  # the least of several


@pytest.mark.parametrize("path", SPINDUMP_FILES, ids=lambda path: path.stem)
def test_handshake_is_the_sum_and_a_spin_rtt_is_near_it(path: Path) -> None:
    for row in handshakes(path).values():
        parts = (row["server_rtt_ns"], row["client_rtt_ns"])
        assert row["handshake_rtt_ns"] == (None if None in parts else sum(parts))
        assert row["application"] == "quic"
        if row["spin_rtt_ns"] is not None:
            assert row["handshake_rtt_ns"] / 3 <= row["spin_rtt_ns"] <= 3 * row["handshake_rtt_ns"]
            assert row["spin_samples"] >= 4


def test_spin_rtts_are_those_of_spindump() -> None:
    """A median is one of the samples that spindump prints."""
    needs.shared("labelled/spindump")
    rtts = {}
    for path in SPINDUMP:
        samples = [int(us) for line in FULL.findall(path.with_suffix(".expected").read_text()) for us in line if us]
        for ports, row in handshakes(path).items():
            if row["spin_rtt_ns"] is not None:
                assert is_near(row["spin_rtt_ns"], samples)
                rtts[path.stem, ports[0]] = row["spin_rtt_ns"] // 1000
    assert rtts == SPINNING


def tshark_names(path: Path) -> set[tuple[int, str, str]]:
    """Client's port, server name and ALPN of each ClientHello that tshark decrypts."""
    fields = ("udp.srcport", "tls.handshake.extensions_server_name", "tls.handshake.extensions_alpn_str")
    options = [option for field in fields for option in ("-e", field)]
    handshakes = ["-Y", "quic && tls.handshake.type == 1", "-T", "fields", "-E", "occurrence=a"]
    command = ["tshark", "-n", "-r", str(path), *handshakes, *options]
    text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    names = set()
    for line in text.splitlines():
        port, name, alpn = line.split("\t")
        names.add((int(port), name, alpn))
    return names


@needs.TSHARK
@pytest.mark.parametrize("path", [*SPINDUMP_FILES, *TCPDUMP_FILES], ids=lambda path: path.stem)
def test_names_are_those_of_tshark(path: Path) -> None:
    rows = handshakes(path)
    names = {(ports[0], row["server_name"] or "", row["alpn"] or "") for ports, row in rows.items()}
    missing = tshark_names(path) - names
    assert not missing
