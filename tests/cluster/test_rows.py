# SPDX-License-Identifier: Apache-2.0
"""The tasks of a cluster: their joined tables are those of one run."""

from __future__ import annotations

import json
import os
import random
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from capture_files import block, enhanced, interface, option, section, write_pcap
from checkout import CAPTURES
from neighbor_wire import OTHER_MAC, advertises, answers, asks, ping, pong, solicits
from plain_wire import START_NS, Connection, Wire
from sample_sets import VARIED
from wiretale.analyzer.errors import InputError
from wiretale.analyzer.options import NO_OPTIONS, AnalysisOptions
from wiretale.analyzer.table import KEPT_TABLES
from wiretale.analyzer.trace import Trace, analyze
from wiretale.cluster.job import begin, read_job
from wiretale.cluster.join import join
from wiretale.cluster.place import Place
from wiretale.cluster.shards import ShardFacts, cut, shards_of
from wiretale.cluster.shards import analyze as analyze_shard

HOSTS = 20
SELECTIONS: list[dict[str, Any]] = [
    {"filter": "tcp"},
    {"filter": "host 10.0.0.1 and not port 6003"},
    {"filter": "ip[6:2] & 0x1fff = 0"},  # without the later fragments
    {"filter": "udp and src net 10.0.2.0/24"},
    {"start": START_NS + 31_000_000},
    {"end": START_NS + 95_000_000},
    {"filter": "not icmp", "start": START_NS + 25_000_000, "end": START_NS + 250_000_000},
    {"filter": "port 1"},  # no packet
]


def rows_of(trace: Trace) -> dict[str, list[bytes]]:
    """The rows of every table as JSON, and the sums. Events and blocks of a cluster are in the order of flows."""
    tables = {name: b"".join(trace.table(name).json()).replace(b",\n", b"\n").split(b"\n") for name in KEPT_TABLES}
    for name in ("events", "blocks"):
        tables[name].sort()
    return {**tables, "sums": [json.dumps([trace.totals, trace.flow_sums]).encode()]}


def joined(files: Sequence[Path | str], folder: Path, shards: int, options: AnalysisOptions = NO_OPTIONS) -> Trace:
    """The result of all tasks."""
    folder.mkdir(exist_ok=True)
    job, continues = begin(Place(str(folder)), [str(file) for file in files], shards, options)
    assert not continues
    cuts = {file: cut(job, file) for file in range(len(files))}
    listed = shards_of(job, cuts)
    sums = [analyze_shard(job, shard) for shard in listed]
    return join(job, listed, cuts, [facts for facts in sums if isinstance(facts, ShardFacts)])


def check_equal(files: Sequence[Path | str], folder: Path, shards: int) -> None:
    check_selected(files, folder, shards, {})


def check_selected(files: Sequence[Path | str], folder: Path, shards: int, selection: dict[str, Any]) -> None:
    """Compares the tasks with one run."""
    several = joined(files, folder, shards, AnalysisOptions.of(selection))
    expected = analyze(*map(str, files), **selection)
    assert several.empty_range == expected.empty_range
    rows_joined = rows_of(several)
    for name, rows in rows_of(expected).items():
        assert rows_joined[name] == rows, (name, selection)


@pytest.mark.filterwarnings("ignore::wiretale.analyzer.errors.DamagedInputWarning")
def test_every_sample_gives_the_rows_of_one_run(tmp_path: Path) -> None:
    for number, file in enumerate(VARIED):
        check_equal([file], tmp_path / f"{number}", 5)
    for shards in (1, 5):
        check_equal(CAPTURES, tmp_path / f"all-{shards}", shards)


def test_ids_in_packets_of_other_flows_are_those_of_one_run(tmp_path: Path) -> None:
    wire = Wire()
    talk = Connection(wire).open(0.0, 20.0)
    for i in range(3):
        talk.data(30.0 + i, i * 1000, 1000)
    talk.ack(50.0, 3000)
    for host in range(3, 6):  # in other shards
        wire.udp(100.0, b"x", target=f"10.0.0.{host}")
    talk.data(255.0, 3000, 1000).ack(275.0, 4000)
    path = wire.write(tmp_path / "ids.pcap")
    assert analyze(path).directions.column("suspected_timeouts")[:2] == [0, 0]
    check_equal([path], tmp_path / "shards", 7)


def fragments(source: str, target: str, number: int, ports: tuple[int, int] = (4000, 5000)) -> list[bytes]:
    """Three fragments of a UDP datagram of 3,000 bytes."""
    body = struct.pack("!HHHH", *ports, 3008, 0) + bytes(3000)
    frames = []
    for at in (0, 1480, 2960):
        piece = body[at : at + 1480]
        wire = Wire().ip(0, source, target, 17, piece)
        frame = bytearray(wire.packets[0][1])
        frame[18:22] = struct.pack("!HH", number, (at // 8) | (0x2000 if at < 2960 else 0))
        frames.append(bytes(frame))
    return frames


def crossing_packets() -> list[tuple[float, bytes]]:
    """A TCP connection with a loss, fragments, and ICMP errors about datagrams to HOSTS hosts, in the order of times (ms)."""
    wire = Wire()
    connection = Connection(wire).open(0)
    for n in range(40):
        if n != 10:
            connection.data(20 + n, n * 1460)
        if n % 4 == 3:
            connection.ack(20.5 + n, min(n + 1, 10) * 1460)
    connection.data(300, 10 * 1460).ack(301, 40 * 1460)
    for host in range(HOSTS):
        target = f"10.0.1.{host + 1}"
        wire.udp(5 + host, b"question", port=6000 + host, target=target)
        sent = wire.packets[-1][1][14:]
        wire.ip(200 + host, "10.9.9.9", "10.0.0.1", 1, struct.pack("!BBHI", 3, 3, 0, 0) + sent[:28])
    for number in range(8):
        pieces = fragments("10.0.2.1", f"10.0.2.{10 + number}", 77)
        sent_pieces = pieces if number % 2 else pieces[:2]
        wire.packets += [(30 + number + 60 * n, piece) for n, piece in enumerate(sent_pieces)]
    return sorted(wire.packets)


def write_part(path: Path, packets: Sequence[tuple[float, bytes]]) -> Path:
    return write_pcap(path, ((START_NS + round(ms * 1e6), frame) for ms, frame in packets))


@pytest.mark.parametrize("alternate", [False, True], ids=["one after the other", "at the same time"])
@pytest.mark.parametrize("shards", [1, 2, 7, 64])
def test_what_crosses_captures_is_whole(tmp_path: Path, alternate: bool, shards: int) -> None:
    packets = crossing_packets()
    half = len(packets) // 2
    parts = [packets[::2], packets[1::2]] if alternate else [packets[:half], packets[half:]]
    files = [write_part(tmp_path / f"{n}.pcap", part) for n, part in enumerate(parts)]
    trace = joined(files, tmp_path / "split", shards)
    (tcp,) = (row for row in trace.flows.rows() if row["protocol"] == "tcp")
    sent = trace.directions.rows(2 * tcp["flow"])[0]
    assert (tcp["packets"], sent["unique_bytes"], sent["retransmissions"]) == (3 + 40 + 11, 40 * 1460, 1)
    udp = [row for row in trace.flows.rows() if row["protocol"] == "udp" and row["destination"].startswith("10.0.1.")]
    assert [row["icmp_errors"] for row in udp] == [1] * HOSTS
    (icmp,) = (row for row in trace.flows.rows() if row["protocol"] == "icmp")
    assert (icmp["packets"], icmp["source"]) == (HOSTS, "10.9.9.9")
    assert sorted(row["state"] for row in trace.datagrams.rows()) == ["complete"] * 4 + ["incomplete"] * 4
    assert rows_of(trace) == rows_of(analyze(*map(str, files)))


def test_times_that_step_back_and_other_packets_keep_their_places(tmp_path: Path) -> None:
    draw = random.Random(20)
    for number in range(12):
        packets = crossing_packets()
        parts: list[list[tuple[float, bytes]]] = [[], [], []]
        for ms, frame in packets:
            parts[draw.randrange(3)].append((ms + draw.choice((0, 0, 0, 0.3)), frame))
        draw.choice(parts).append((400, bytes(12) + b"\x08\x06" + bytes(46)))  # ARP
        files = [write_part(tmp_path / f"{number}-{n}.pcap", part) for n, part in enumerate(parts)]
        check_equal(files, tmp_path / f"{number}", draw.choice((2, 3, 9)))


def test_packets_of_other_shards_advance_the_clock(tmp_path: Path) -> None:
    wire = Wire()
    for n in range(12):
        wire.udp(1000 * n, b"x", port=6000 + n, target=f"10.0.3.{n}")
    wire.udp(2e6, b"x", target="10.0.4.1").udp(2e6 + 1, b"x", target="10.0.4.1")
    trace = joined([wire.write(tmp_path / "gap.pcap")], tmp_path / "split", 6)
    assert trace.flows.column("end") == ["idle"] * 12 + ["end_of_capture"]
    check_equal([tmp_path / "gap.pcap"], tmp_path / "again", 3)


@pytest.mark.parametrize("at", [0, 150, 399])
def test_one_wrong_time_stamp_advances_the_clock_of_no_shard(tmp_path: Path, at: int) -> None:
    wire = Wire()
    for n in range(400):
        wire.udp(10_000 * n, b"x", target=f"10.0.3.{n % 50}")
    packets = sorted(wire.packets)
    packets[at : at + 1] = [(1e9, packets[at][1])]
    for shards in (1, 5, 50):
        check_equal([write_part(tmp_path / "wrong.pcap", packets)], tmp_path / f"{shards}", shards)


def test_a_capture_without_times(tmp_path: Path) -> None:
    simple = b"".join(block(3, struct.pack("<I", len(frame)) + frame) for _, frame in crossing_packets())
    alone = tmp_path / "simple.pcapng"
    alone.write_bytes(section() + interface() + enhanced(5, crossing_packets()[0][1]) + simple)
    check_equal([alone], tmp_path / "alone", 4)


def test_an_interface_that_is_described_late_may_be_in_the_last_capture(tmp_path: Path) -> None:
    packets = [enhanced(1000 * n, frame) for n, (_, frame) in enumerate(crossing_packets())]
    late = tmp_path / "late.pcapng"
    late.write_bytes(
        section() + interface() + b"".join(packets[:80]) + interface() + enhanced(90_000, crossing_packets()[3][1], 1)
    )
    early = tmp_path / "early.pcapng"
    early.write_bytes(section() + interface() + b"".join(packets[80:]))
    check_equal([early, late], tmp_path / "good", 3)
    with pytest.raises(ValueError, match=r"late.pcapng: describes an interface after its 64th packet"):
        joined([late, early], tmp_path / "bad", 3)


def test_counts_and_texts_of_interfaces_are_those_of_the_capture(tmp_path: Path) -> None:
    texts = option(2, b"eth7") + option(12, b"Linux 7") + option(9, b"\x09") + option(0, b"")
    drops = block(5, struct.pack("<III", 0, 0, 9) + option(4, struct.pack("<Q", 500)) + option(5, struct.pack("<Q", 7)))
    file = tmp_path / "drops.pcapng"
    packets = b"".join(enhanced(START_NS + n, frame, length=2000) for n, (_, frame) in enumerate(crossing_packets()))
    file.write_bytes(section(options=option(4, b"dumpcap 5") + option(0, b"")) + interface(texts) + packets + drops)
    trace = joined([file], tmp_path / "split", 3)
    (row,) = trace.interfaces.rows()
    assert (row["name"], row["received"], row["dropped_interface"]) == ("eth7", 500, 7)
    assert row["truncated_packets"] == row["packets"] == len(crossing_packets())
    assert "capture-dropped" in [finding["code"] for finding in trace.findings.rows()]
    assert rows_of(trace) == rows_of(analyze(str(file)))


def test_shards_have_the_frames_of_the_capture_and_no_bulk_payload(tmp_path: Path) -> None:
    wire = Wire()
    connection = Connection(wire).open(0)
    secret = b"not read by the analysis"
    for n in range(400):
        connection.data(20 + n, n * 1460)
    file = wire.write(tmp_path / "bulk.pcap")
    content = file.read_bytes().replace(bytes(1000), (secret * 50)[:1000])
    file.write_bytes(content)
    trace = joined([file], tmp_path / "split", 3)
    assert rows_of(trace) == rows_of(analyze(str(file)))
    shards = sorted((tmp_path / "split").glob("0*/*.zst"))
    shard_traces = [analyze(str(path), keep_packets=True) for path in shards]
    frames = [frame for shard_trace in shard_traces for frame in shard_trace.packets()["frame"]]
    assert sorted(frames) == list(range(1, 404))
    assert sum(path.stat().st_size for path in shards) < len(content) / 10
    read = [row["captured_bytes"] for shard_trace in shard_traces for row in shard_trace.interfaces.rows()]
    assert sum(read) < 70 * 1500 + 400 * 70  # the first 64 KiB, and headers


def test_tables_that_are_lost_or_cut_short_are_made_again(tmp_path: Path) -> None:
    """In a folder whose name is no UTF-8, which DuckDB does not take."""
    file = write_part(tmp_path / "0.pcap", crossing_packets())
    folder = tmp_path / os.fsdecode(b"work \xff")
    expected = rows_of(joined([file], folder, 1))
    job = read_job(Place(str(folder)))
    assert job
    for name, size in (("events", 0), ("directions", 0), ("flows", 200)):
        table = folder / "shard-00" / f"{name}.parquet"
        os.truncate(table, size) if size else table.unlink()
        cuts = {0: cut(job, 0)}
        (shard,) = shards_of(job, cuts)
        facts = analyze_shard(job, shard)
        assert isinstance(facts, ShardFacts)
        assert rows_of(join(job, [shard], cuts, [facts])) == expected, name
    lacking = {name: size for name, size in facts.tables.items() if name != "directions"}
    with pytest.raises(InputError, match="rows of directions are missing"):
        join(job, [shard], cuts, [facts._replace(tables=lacking)])
    table.write_bytes(bytes(table.stat().st_size))
    with pytest.raises(InputError, match="damaged: "):
        join(job, [shard], cuts, [facts])


@pytest.mark.parametrize("alternate", [False, True], ids=["one after the other", "at the same time"])
@pytest.mark.parametrize("shards", [1, 7])
def test_selected_packets_give_the_rows_of_one_run(tmp_path: Path, alternate: bool, shards: int) -> None:
    packets = crossing_packets()
    half = len(packets) // 2
    parts = [packets[::2], packets[1::2]] if alternate else [packets[:half], packets[half:]]
    files = [write_part(tmp_path / f"{n}.pcap", part) for n, part in enumerate(parts)]
    for number, selection in enumerate(SELECTIONS):
        check_selected(files, tmp_path / f"{number}", shards, selection)


@pytest.mark.filterwarnings("ignore::wiretale.analyzer.errors.DamagedInputWarning")
def test_selected_packets_of_every_sample(tmp_path: Path) -> None:
    for number, file in enumerate(CAPTURES):
        interfaces = analyze(str(file), interfaces_only=True).interfaces
        first = min(filter(None, interfaces.column("first_ns")))
        last = max(filter(None, interfaces.column("last_ns")))
        middle = {"start": first + (last - first) // 4, "end": first + 3 * (last - first) // 4}
        selections = ({"filter": "ip[8] & 1 = 0 or ip6"}, middle, {**middle, "filter": "greater 100"})
        check_selected([file], tmp_path / f"{number}", 3, selections[number % 3])


def test_times_that_step_back_in_one_capture(tmp_path: Path) -> None:
    draw = random.Random(21)
    packets = [(ms + draw.choice((0, 0, 0, 40)), frame) for ms, frame in crossing_packets()]
    for number, selection in enumerate(SELECTIONS):
        check_selected([write_part(tmp_path / "back.pcap", packets)], tmp_path / f"{number}", 5, selection)


def test_idle_flows_end_by_the_clock_of_selected_packets(tmp_path: Path) -> None:
    wire = Wire()
    for n in range(12):
        wire.udp(1000 * n, b"x", port=6000 + n, target=f"10.0.3.{n}")
    wire.udp(2e6, b"x", target="10.0.4.1").udp(2e6 + 1, b"x", target="10.0.4.1")
    file = wire.write(tmp_path / "gap.pcap")
    check_selected([file], tmp_path / "kept", 6, {"filter": "not net 10.0.3.0/31"})
    check_selected([file], tmp_path / "left", 6, {"filter": "not host 10.0.4.1"})


def local_packets() -> list[tuple[float, bytes]]:
    """ARP in two VLANs, neighbor discovery and pings, of which some have no answer (ms)."""
    timed = []
    for n in range(60):
        server = f"10.0.4.{100 + n}"
        timed += [asks(n / 10, server, vlan=5 + n % 2), ping(n / 10 + 0.01, n, server=server)]
        if n % 3:
            mac = f"02:00:00:00:01:{n:02x}"
            timed += [answers(n / 10 + 0.002, server, vlan=5 + n % 2, mac=mac), pong(n / 10 + 0.04, n, server=server)]
            timed += [answers(n / 10 + 0.003, server, vlan=5 + n % 2, mac=OTHER_MAC)]
        timed += [solicits(n / 10 + 0.05, "fd00::50"), advertises(n / 10 + 0.06, "fd00::50")]
    return [(at * 1000, bytes(packet)) for at, packet in sorted(timed, key=lambda entry: entry[0])]


@pytest.mark.parametrize("alternate", [False, True], ids=["one after the other", "at the same time"])
def test_exchanges_of_the_local_network_are_those_of_one_run(tmp_path: Path, alternate: bool) -> None:
    packets = local_packets()
    half = len(packets) // 2
    parts = [packets[::2], packets[1::2]] if alternate else [packets[:half], packets[half:]]
    files = [write_part(tmp_path / f"{n}.pcap", part) for n, part in enumerate(parts)]
    trace = joined(files, tmp_path / "split", 7)
    assert {row["kind"] for row in trace.exchanges.rows()} == {"arp", "nd", "icmp_echo"}
    assert trace.neighbors.total("conflicts") or alternate
    assert rows_of(trace) == rows_of(analyze(*map(str, files)))
