# SPDX-License-Identifier: Apache-2.0
"""What identifies a packet for `wiretale compare`: crafted packets whose columns are known."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import wiretale
from capture_files import enhanced, interface, section, write_pcap
from capture_points import RAW_IP
from numbered_payloads import block
from wiretale.analyzer import _core
from wiretale.analyzer.options import NO_OPTIONS, ROWS_MAX, ReadingMode
from wiretale.analyzer.table import COLUMNS, Table
from wiretale.analyzer.trace import packets_in_parts

Row = dict[str, Any]
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


def identified(folder: Path, packets: Iterable[tuple[bytes, int]]) -> tuple[list[Row], _core.Analysis]:
    """Rows of packets, of which so many bytes were captured."""
    path = folder / "packets.pcapng"
    records = (enhanced(at, packet[:captured], length=len(packet)) for at, (packet, captured) in enumerate(packets))
    path.write_bytes(section() + interface(link_type=RAW_IP) + b"".join(records))
    return read(path)


def read(path: Path) -> tuple[list[Row], _core.Analysis]:
    mode = ReadingMode(packets="identified", packet_rows_most=ROWS_MAX)
    core = _core.Analysis([str(path)], [str(path)], NO_OPTIONS, mode)
    rows = [row for part in packets_in_parts(core) for row in Table(part)]
    return rows, core


def test_datagrams_whole_cut_and_back(tmp_path: Path) -> None:
    """The second is cut behind the header of its block, the last in its IP header."""
    packet = ipv4(UDP, udp(block(5, 100, run=9, stream=2)), 77)
    (first, cut, answer), core = identified(
        tmp_path, [(packet, 128), (packet, 20 + 8 + 32), (back(packet), 128), (packet, 12)]
    )
    assert core.totals()["packets"] == 4
    for row in (first, cut):
        assert (row["run"], row["stream"], row["block"], row["blocks"], row["payload_bytes"]) == (9, 2, 5, 1, 100)
        assert (row["ip_id"], row["ip_bytes"], row["ttl"], row["datagram_frame"]) == (77, 128, 64, None)
    assert (first["captured_bytes"], cut["captured_bytes"]) == (100, 32)
    assert first["digest"] != cut["digest"]
    assert first["digest_short"] == cut["digest_short"]
    assert (first["flow"], first["direction"]) == (answer["flow"], 1 - answer["direction"])
    (flow,) = Table(core.table("flows"))
    assert (flow["protocol_number"], flow["source"], flow["source_port"]) == (17, "10.0.0.1", 5000)
    assert (flow["destination"], flow["destination_port"], flow["path"]) == ("10.0.0.2", 6000, None)


def test_fragments_name_their_datagram_and_the_first_identifies_it(tmp_path: Path) -> None:
    """The second half comes first, then both halves and the second again; of another datagram only the first half."""
    data = udp(bytes(152))
    first, alone = (ipv4(UDP, data[:80], number, 0, last=False) for number in (1, 2))
    second = ipv4(UDP, data[80:], 1, 80)
    rows, core = identified(tmp_path, [(packet, 100) for packet in (second, first, first, second, alone)])
    by_frame = {row["frame"]: row for row in rows}
    assert [by_frame[n]["datagram_frame"] for n in range(1, 6)] == [1, 1, 1, 1, 5]
    assert [by_frame[n]["packet"] for n in range(1, 6)] == [None, 1, None, None, 4]
    complete, incomplete = Table(core.table("datagrams"))
    assert (complete["first_frame"], complete["state"], complete["payload_bytes"]) == (1, "complete", 152)
    assert complete["complete_ns"] == by_frame[2]["time_ns"]
    assert (incomplete["first_frame"], incomplete["complete_ns"], incomplete["payload_bytes"]) == (5, None, 152)


def test_a_datagram_of_several_blocks_has_their_number(tmp_path: Path) -> None:
    """The last block is shorter; of a cut datagram those count whose header was captured, and a number that does not follow
    ends them."""
    packet = ipv4(UDP, udp(b"".join([*(block(40 + n) for n in range(3)), block(43, 50)])))
    gap = ipv4(UDP, udp(block(50) + block(52)))
    rows, _ = identified(tmp_path, [(packet, len(packet)), (packet, 300), (gap, len(gap))])
    assert [(row["block"], row["blocks"], row["block_bytes"]) for row in rows] == [
        (40, 4, 200),
        (40, 2, 200),
        (50, 1, 200),
    ]


def test_segments_have_their_fields_and_pure_acks_a_digest_of_these(tmp_path: Path) -> None:
    def segment(window: int, payload: int = 0) -> bytes:
        head = struct.pack("!HHIIBBHHH", 80, 4000, 0x1000, 0x2000, 0x50, 0x10, window, 0, 0)
        return ipv4(TCP, head + bytes(payload))

    rows, _ = identified(tmp_path, [(packet, len(packet)) for packet in (segment(256, 50), segment(256), segment(512))])
    assert [(row["tcp_sequence"], row["tcp_acknowledgment"], row["flags"]) for row in rows] == [
        (0x1000, 0x2000, 0x10)
    ] * 3
    assert [row["payload_bytes"] for row in rows] == [50, 0, 0]
    assert rows[1]["digest"] != rows[2]["digest"]
    assert rows[1]["digest_short"]


def test_rows_of_many_batches_are_numbered_in_order(tmp_path: Path) -> None:
    packet = ipv4(UDP, udp(b"data"))
    rows, core = read(write_pcap(tmp_path / "many.pcap", ((at, packet) for at in range(20_000)), link_type=RAW_IP))
    assert [row["packet"] for row in rows] == list(range(20_000))
    assert {(row["run"], row["block"]) for row in rows} == {(None, None)}
    assert core.totals()["packets"] == 20_000 and not len(core.table("directions"))


def test_other_readings_do_not_identify_packets(tmp_path: Path) -> None:
    path = write_pcap(tmp_path / "one.pcap", [(0, ipv4(UDP, udp(b"data")))], link_type=RAW_IP)
    (row,), _ = read(path)
    (plain,) = wiretale.analyze(path, keep_packets=True).packets()
    assert plain == {name: row[name] for name in COLUMNS["packets"]}
    assert "digest" in row and "digest" not in plain
