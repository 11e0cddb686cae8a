# SPDX-License-Identifier: Apache-2.0
"""Rows of the core for `wiretale compare`: crafted packets whose rows are known."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from capture_files import enhanced, interface, section, write_pcap
from capture_points import RAW_IP
from numbered_payloads import block
from wiretale.analyzer import _core

ENDS = bytes([10, 0, 0, 1, 10, 0, 0, 2])
UDP, TCP = 17, 6


def ipv4(protocol: int, body: bytes, ip_id: int = 1, offset: int = 0, last: bool = True) -> bytes:
    """A packet from 10.0.0.1 to 10.0.0.2; `offset` is that of a fragment, in bytes."""
    word = offset // 8 | (0 if last else 0x2000)
    return struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), ip_id, word, 64, protocol, 0) + ENDS + body


def udp(payload: bytes, length: int = 0) -> bytes:
    """A header with that length of the payload, or its own, and the payload."""
    return struct.pack("!HHHH", 5000, 6000, 8 + (length or len(payload)), 0) + payload


def back(packet: bytes) -> bytes:
    """The same from the other end."""
    return packet[:12] + ENDS[4:] + ENDS[:4] + packet[22:24] + packet[20:22] + packet[24:]


def observed(folder: Path, packets: Iterable[tuple[bytes, int]]) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Rows and counts of packets, of which so many bytes were captured."""
    path = folder / "packets.pcapng"
    records = (enhanced(at, packet[:captured], length=len(packet)) for at, (packet, captured) in enumerate(packets))
    path.write_bytes(section() + interface(link_type=RAW_IP) + b"".join(records))
    return read(path)


def read(path: Path) -> tuple[list[dict[str, Any]], dict[str, int]]:
    observations = _core.Observations([str(path)])
    with duckdb.connect() as connection:
        connection.register("observations", observations)
        result = connection.execute("FROM observations")
        names = [column[0] for column in result.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in result.fetchall()]
    return rows, observations.counts()


def test_datagrams_whole_cut_and_back(tmp_path: Path) -> None:
    """The second is cut behind the header of its block, the last in its IP header."""
    packet = ipv4(UDP, udp(block(5, 100, run=9, stream=2)), 77)
    (first, cut, answer), counts = observed(
        tmp_path, [(packet, 128), (packet, 20 + 8 + 32), (back(packet), 128), (packet, 12)]
    )
    assert (counts["packets"], counts["unread"] + counts["not_ip"], counts["unassigned"]) == (4, 1, 0)
    for row in (first, cut):
        assert (row["run"], row["stream"], row["number"], row["payload"]) == (9, 2, 5, 100)
        assert (row["ip_id"], row["ip_bytes"], row["ttl"], row["datagram"]) == (77, 128, 64, None)
    assert first["ends"] == "17|10.0.0.1|5000|10.0.0.2|6000|"
    assert (cut["ends"], answer["ends"]) == (None, "17|10.0.0.2|6000|10.0.0.1|5000|")
    assert (first["digested"], cut["digested"]) == (100, 32)
    assert first["digest"] != cut["digest"]
    assert first["digest_short"] == cut["digest_short"]
    assert first["conversation"] == answer["conversation"]
    assert first["side"] != answer["side"]


def test_fragments_have_their_datagram_and_one_completes_it(tmp_path: Path) -> None:
    """Two halves and the second half again; of another datagram only the first half."""
    data = udp(bytes(152))
    halves = (data[:80], 0, False), (data[80:], 80, True)
    packets = [ipv4(UDP, body, number, at, last) for number in (1, 2) for body, at, last in halves]
    rows, _ = observed(tmp_path, [(packet, 100) for packet in (*packets[:2], packets[1], packets[2])])
    assert [row["datagram"] for row in rows] == [0, 0, 0, 1]
    assert [row["completes"] for row in rows] == [0, 1, 0, 0]
    assert [(row["fragment_start"], row["fragment_end"]) for row in rows] == [(0, 80), (80, 160), (80, 160), (0, 80)]
    assert rows[0]["payload"] == 152


def test_a_datagram_of_several_blocks_has_a_row_for_each(tmp_path: Path) -> None:
    """The last block is shorter, and of a cut datagram the captured ones have rows."""
    packet = ipv4(UDP, udp(b"".join([*(block(40 + n) for n in range(3)), block(43, 50)])))
    rows, _ = observed(tmp_path, [(packet, len(packet)), (packet, 300)])
    assert [(row["frame"], row["number"], row["part"], row["payload"]) for row in rows] == [
        *((1, 40 + n, n, 200) for n in range(3)),
        (1, 43, 3, 50),
        *((2, 40 + n, n, 200) for n in range(2)),
    ]


def test_segments_have_their_fields_and_pure_acks_a_digest_of_these(tmp_path: Path) -> None:
    def segment(window: int, payload: int = 0) -> bytes:
        head = struct.pack("!HHIIBBHHH", 80, 4000, 0x1000, 0x2000, 0x50, 0x10, window, 0, 0)
        return ipv4(TCP, head + bytes(payload))

    rows, _ = observed(tmp_path, [(packet, len(packet)) for packet in (segment(256, 50), segment(256), segment(512))])
    assert [(row["sequence"], row["acknowledgment"], row["flags"]) for row in rows] == [(0x1000, 0x2000, 0x10)] * 3
    assert [row["payload"] for row in rows] == [50, 0, 0]
    assert rows[1]["digest"] != rows[2]["digest"]
    assert rows[1]["digest_short"]


def test_rows_of_many_batches_are_in_order(tmp_path: Path) -> None:
    packet = ipv4(UDP, udp(b"data"))
    path = write_pcap(tmp_path / "many.pcap", ((at, packet) for at in range(20_000)), link_type=RAW_IP)
    rows, counts = read(path)
    assert [row["packet"] for row in rows] == list(range(20_000))
    assert {(row["run"], row["number"]) for row in rows} == {(None, None)}
    assert counts["packets"] == 20_000


def test_a_file_that_is_missing_is_an_error_of_the_stream(tmp_path: Path) -> None:
    with pytest.raises(duckdb.Error, match="No such file"):
        read(tmp_path / "none.pcap")
