# SPDX-License-Identifier: Apache-2.0
"""First bytes of a connection among very many others."""

from __future__ import annotations

import struct
from pathlib import Path

import wiretale
from capture_files import write_pcap
from exchange_rows import of_kind
from plain_wire import ACK, START_NS, SYN, Wire

CONNECTIONS = 140_000  # more than the first table of the selection holds


def segment(source: int, port: int, at: int, flags: int, payload: bytes = b"") -> bytes:
    """A segment of a client to 10.0.0.2, port 80."""
    tcp = struct.pack("!HHIIBBHHH", port, 80, at, 1, 0x50, flags, 512, 0, 0) + payload
    return Wire().ip(0, f"10.{source >> 16}.{source >> 8 & 255}.{source & 255}", "10.0.0.2", 6, tcp).packets[0][1]


def test_a_request_in_pieces_is_read_among_very_many_connections(tmp_path: Path) -> None:
    frames = [segment(9, 999, 7, SYN), segment(9, 999, 8, ACK, b"GE")]
    model = segment(0x20000, 1024, 5, SYN)
    for n in range(CONNECTIONS):
        frames.append(model[:26] + struct.pack("!I", 0x0A020000 + n) + model[30:])
    frames.append(segment(9, 999, 10, ACK, b"T /x HTTP/1.1\r\nHost: late.example\r\n\r\n"))
    file = write_pcap(tmp_path / "many.pcap", ((START_NS + n, frame) for n, frame in enumerate(frames)))
    trace = wiretale.analyze(file)
    assert trace.totals["flows"] == CONNECTIONS + 1
    assert [row["name"] for row in of_kind(trace, "http")] == ["late.example"]
