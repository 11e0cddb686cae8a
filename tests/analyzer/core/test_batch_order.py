# SPDX-License-Identifier: Apache-2.0
"""The rows do not depend on the number of threads, nor on whether packets are taken in shards, flow by flow.

Where packets are wanted as rows, one thread takes them in their order: what both give is compared.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from scapy.all import ICMP, IP, TCP, UDP, raw

from plain_wire import FIN, MSS, RST, SYN, Connection, Wire, block, sack
from wiretale.analyzer import _core
from wiretale.analyzer.options import NO_OPTIONS, AnalysisOptions, Packets, ReadingMode
from wiretale.analyzer.table import AFTER_PASS, KEPT_TABLES

CORE_TABLES = [name for name in KEPT_TABLES if name not in AFTER_PASS]  # which Python makes
FILE_HEADER, RECORD_HEADER = 24, 16


def tables_of(path: Path, packets: Packets, **options: Any) -> dict[str, str]:
    """Every table but packets as JSON."""
    core = _core.Analysis([str(path)], [str(path)], AnalysisOptions(**options), ReadingMode(packets=packets))
    while core.step(1 << 20):
        pass
    core.finish()
    return {name: b"".join(core.table(name).json()).decode() for name in CORE_TABLES}


def rows_of(path: Path, table: str, packets: Packets = "none") -> list[dict[str, Any]]:
    core = _core.Analysis([str(path)], [str(path)], NO_OPTIONS, ReadingMode(packets=packets))
    while core.step(1 << 20):
        pass
    core.finish()
    return core.table(table).rows()


def transfer(wire: Wire, number: int, chance: Random, start: float) -> None:
    """One connection: some segments are lost and retransmitted, some come late; now and then the same ports begin anew."""
    talk = Connection(wire, port=20000 + number % 250, ends=(f"10.1.{number % 7}.1", f"10.2.{number % 250}.2"))
    talk.open(start, rtt=10)
    at, ms = 0, start + 12
    for _ in range(chance.randrange(2, 25)):
        ms += chance.random() * 3
        if chance.random() < 0.1:  # lost before the capture, reported, retransmitted
            talk.data(ms + 0.1, at + MSS).ack(ms + 5, at, options=sack((at + MSS, at + 2 * MSS)))
            talk.data(ms + 12, at).ack(ms + 17, at + 2 * MSS)
            at, ms = at + 2 * MSS, ms + 17
            continue
        if chance.random() < 0.05:  # a copy
            talk.data(ms, at)
        talk.data(ms, at).ack(ms + 5, at + MSS)
        at += MSS
    if chance.random() < 0.2:
        talk.send(ms + 20, 0, at, flags=RST)
    elif chance.random() < 0.5:
        talk.send(ms + 20, 0, at, flags=FIN | 16).send(ms + 25, 1, 0, flags=FIN | 16, ack=at + 1)
    if chance.random() < 0.3:
        talk.send(ms + 400, 0, 77_000_000, flags=SYN)


def datagrams(wire: Wire, number: int, chance: Random, start: float) -> None:
    """Numbered blocks over UDP, some of them lost, late or twice."""
    for sequence in range(40):
        if chance.random() < 0.1:
            continue
        for _ in range(1 + (chance.random() < 0.05)):
            late = 9.0 if chance.random() < 0.1 else 0.0
            ends = {"source": f"10.3.0.{number}", "target": "10.3.1.1"}
            wire.udp(start + sequence + late, block(sequence, 64, start + sequence), port=6000 + number, **ends)


def entangled(flows: int = 400, seed: int = 7) -> Wire:
    """Conversations side by side, so that packets in a row are rarely of the same one."""
    chance, wire = Random(seed), Wire()
    for number in range(flows):
        transfer(wire, number, chance, chance.random() * 500)
    for number in range(1, 9):
        datagrams(wire, number, chance, chance.random() * 300)
    return wire


def records(capture: bytes) -> Iterator[int]:
    """Where each record begins."""
    at = FILE_HEADER
    while at < len(capture):
        yield at
        at += RECORD_HEADER + struct.unpack_from("<I", capture, at + 8)[0]


def write_with_steps(wire: Wire, path: Path) -> Path:
    """Each 500th packet carries a time 2 ms too early."""
    capture = bytearray(wire.write(path).read_bytes())
    for at in list(records(bytes(capture)))[500::500]:
        seconds, fraction = struct.unpack_from("<II", capture, at)
        early = seconds * 10**9 + fraction - 2_000_000
        struct.pack_into("<II", capture, at, early // 10**9, early % 10**9)
    path.write_bytes(capture)
    return path


def repeat(path: Path, times: int) -> int:
    """The capture again and again, each time 3 s later; returns its packets."""
    once = bytearray(path.read_bytes())
    places, capture = list(records(bytes(once))), bytearray(once)
    for _ in range(times - 1):
        for at in places:
            struct.pack_into("<I", once, at, struct.unpack_from("<I", once, at)[0] + 3)
        capture += once[FILE_HEADER:]
    path.write_bytes(capture)
    return len(places) * times


@pytest.mark.parametrize("seed", range(4))
def test_rows_are_the_same_taken_flow_by_flow_and_in_order(tmp_path: Path, seed: int) -> None:
    path = write_with_steps(entangled(seed=seed), tmp_path / "entangled.pcap")
    by_flow, in_order = tables_of(path, "none"), tables_of(path, "all")
    for name in CORE_TABLES:
        assert by_flow[name] == in_order[name], name
    assert len(by_flow["events"]) > 100_000 and len(by_flow["blocks"]) > 50_000


def test_rows_are_the_same_over_several_batches(tmp_path: Path) -> None:
    path = write_with_steps(entangled(), tmp_path / "entangled.pcap")
    assert repeat(path, 30) > 2 * 196_608
    by_flow, in_order = tables_of(path, "none"), tables_of(path, "all")
    for name in CORE_TABLES:
        assert by_flow[name] == in_order[name], name


def fragmented(wire: Wire, number: int, start: float) -> None:
    """Datagrams in two fragments, in either order, some without the second; errors about them and about connections."""
    source, target = f"10.4.{number % 5}.1", f"10.5.{number % 9}.1"
    datagram = raw(UDP(sport=7000 + number % 50, dport=53, len=8 + 1600)) + bytes(1600)
    pieces = [(0, 1, datagram[:1480]), (185, 0, datagram[1480:])]
    for late, (offset, more, piece) in enumerate(pieces if number % 3 else reversed(pieces)):
        if late and number % 4 == 0:
            continue
        header = IP(src=source, dst=target, id=number, proto=17, flags=more, frag=offset)
        wire.packets.append((start + late, bytes(12) + b"\x08\0" + raw(header / piece)))
    ends = {"src": f"10.1.{number % 7}.1", "dst": f"10.2.{number % 250}.2"}
    quoted = IP(**ends) / TCP(sport=20000 + number % 250, dport=80, seq=1001)
    wire.ip(start + 5, "10.9.9.9", f"10.1.{number % 7}.1", 1, raw(ICMP(type=3, code=1) / quoted))


@pytest.mark.parametrize("over_limits", [False, True])
def test_rows_do_not_depend_on_the_number_of_threads(tmp_path: Path, over_limits: bool) -> None:
    wire = entangled()
    for number in range(200 if over_limits else 0):
        fragmented(wire, number, 1.0 + 2.3 * number)
    path = write_with_steps(wire, tmp_path / "entangled.pcap")
    repeat(path, 8)
    serial = tables_of(path, "none", jobs=1)
    assert len(serial["events"]) > 1_000_000 and (len(serial["datagrams"]) > 100_000) == over_limits
    for jobs in (2, 3, 8):
        assert tables_of(path, "none", jobs=jobs) == serial


def test_samples_give_the_same_rows_with_any_number_of_threads(sample: Path) -> None:
    serial = tables_of(sample, "all")
    for jobs in (1, 2, 3, 8):
        assert tables_of(sample, "none", jobs=jobs) == serial


def test_flows_are_numbered_by_their_first_packets_and_events_follow_the_capture(tmp_path: Path) -> None:
    path = entangled().write(tmp_path / "entangled.pcap")
    firsts = [row["first_frame"] for row in rows_of(path, "flows")]
    events = rows_of(path, "events")
    first_of = dict(enumerate(firsts))
    assert len(firsts) > 400 and firsts == sorted(firsts)
    during = [row for row in events if not str(row["kind"]).startswith("block")]  # those may be about earlier packets
    frames = [row["frame"] for row in during]
    assert frames == sorted(frames)
    assert all(row["frame"] >= first_of[row["flow"]] for row in during)


def test_the_same_capture_gives_the_same_rows_again(tmp_path: Path) -> None:
    """The hash that groups them is another in each run."""
    path = entangled(seed=11).write(tmp_path / "entangled.pcap")
    first = tables_of(path, "none", block_size=1000)
    assert all(tables_of(path, "none", block_size=1000) == first for _ in range(5))


def test_flows_over_the_bound_end_in_order(tmp_path: Path) -> None:
    path = entangled().write(tmp_path / "entangled.pcap")
    in_order = tables_of(path, "all", max_flows=20)
    assert '"end":"evicted"' in in_order["flows"]
    for jobs in (1, 2, 3):
        assert tables_of(path, "none", max_flows=20, jobs=jobs) == in_order


@pytest.mark.parametrize("later_s", [0, 200])
def test_flows_of_fragments_over_the_bound_end_in_order(tmp_path: Path, later_s: int) -> None:
    """Fragments whose first one is missing begin flows when their datagrams end: at the end of the capture, or 120 s later."""
    wire = Wire()
    piece = raw(UDP(sport=9, dport=10) / bytes(1000))[:800]
    for number in range(40):
        header = IP(src=f"10.3.{number}.1", dst="10.4.0.1", id=number, proto=17, flags=1, frag=100)
        wire.packets.append((float(number), bytes(12) + b"\x08\0" + raw(header / piece)))
    for number in range(300 if later_s else 0):
        wire.packets.append(
            (1000.0 * later_s + number, bytes(12) + b"\x08\0" + raw(IP(src="10.5.0.1", dst="10.5.0.2", proto=50)))
        )
    path = wire.write(tmp_path / "fragments.pcap")
    in_order = tables_of(path, "all", max_flows=5)
    assert in_order["flows"].count('"end":"evicted"') >= 35
    for jobs in (2, 3, 8):
        assert tables_of(path, "none", max_flows=5, jobs=jobs) == in_order


def test_icmp_errors_find_the_flow_that_they_quote(tmp_path: Path) -> None:
    wire = entangled(50)
    quoted = IP(src="10.1.3.1", dst="10.2.3.2") / TCP(sport=20003, dport=80, seq=1001)
    error = raw(ICMP(type=3, code=1) / quoted)
    wire.ip(700.0, "10.9.9.9", "10.1.3.1", 1, error)
    path = wire.write(tmp_path / "quoted.pcap")
    assert tables_of(path, "none") == tables_of(path, "all")
    assert [row["kind"] for row in rows_of(path, "events") if row["kind"] == "icmp_error"] == ["icmp_error"]
