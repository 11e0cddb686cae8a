# SPDX-License-Identifier: Apache-2.0
"""`wiretale split`, the analysis of shards and `wiretale gather`: the files of one run, byte for byte."""

from __future__ import annotations

import json
import random
import shutil
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from capture_files import block, enhanced, interface, option, section, write_pcap
from checkout import CAPTURES, SAMPLES
from neighbor_wire import OTHER_MAC, advertises, answers, asks, ping, pong, solicits
from plain_wire import START_NS, Connection, Wire
from processes import refusal
from wiretale.analyzer.options import AnalysisOptions
from wiretale.analyzer.shards import layout, steps
from wiretale.analyzer.table import KEPT_TABLES
from wiretale.analyzer.trace import Trace, analyze

HOSTS = 20
COMMANDS = ("analyze", "gather")
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


def rows_of(trace: Trace) -> dict[str, bytes]:
    """Every table as JSON, and the sums."""
    tables = {name: b"".join(trace.table(name).json()) for name in KEPT_TABLES}
    return {**tables, "sums": json.dumps([trace.totals, trace.flow_sums]).encode()}


def gathered(files: Sequence[Path | str], folder: Path, shards: int) -> Trace:
    """The result of the three steps."""
    split = layout.plan([str(file) for file in files], folder, shards)
    steps.split_captures(folder, "test")
    for shard in range(split.shards):
        assert steps.analyze_shard(folder, shard)
    return steps.gather(folder)


def check_equal(files: Sequence[Path | str], folder: Path, shards: int) -> None:
    expected, gathered_rows = rows_of(analyze(*map(str, files))), rows_of(gathered(files, folder, shards))
    for name, rows in expected.items():
        assert gathered_rows[name] == rows, name


@pytest.mark.filterwarnings("ignore::wiretale.analyzer.errors.DamagedInputWarning")
@pytest.mark.parametrize("shards", [1, 5])
def test_every_sample_gives_the_rows_of_one_run(tmp_path: Path, shards: int) -> None:
    for number, file in enumerate(CAPTURES):
        check_equal([file], tmp_path / f"{number}", shards)
    check_equal(CAPTURES, tmp_path / "all", shards)


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
    trace = gathered(files, tmp_path / "split", shards)
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
    trace = gathered([wire.write(tmp_path / "gap.pcap")], tmp_path / "split", 6)
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


def test_a_flow_that_another_shard_may_have_ended_is_an_error(tmp_path: Path) -> None:
    wire = Wire()
    for n in range(400):
        wire.udp(n, b"x", target=f"10.0.3.{n % 50}")
    packets = [(ms, frame) for ms, frame in sorted(wire.packets)]
    packets[390:390] = [(1e6 + ms, frame) for ms, frame in packets[:20]]
    file = write_part(tmp_path / "back.pcap", packets)
    with pytest.raises(ValueError, match="flows whose end depends on times that step back"):
        gathered([file], tmp_path / "split", 6)
    assert steps.gather(tmp_path / "split", inexact=True).totals["packets"] == 420


def test_a_capture_without_times_is_split_alone(tmp_path: Path) -> None:
    simple = b"".join(block(3, struct.pack("<I", len(frame)) + frame) for _, frame in crossing_packets())
    alone = tmp_path / "simple.pcapng"
    alone.write_bytes(section() + interface() + enhanced(5, crossing_packets()[0][1]) + simple)
    check_equal([alone], tmp_path / "alone", 4)
    frame = crossing_packets()[0][1]
    other = write_pcap(tmp_path / "other.pcap", [(0, frame), (10**9, frame)])
    with pytest.raises(ValueError, match=r"simple.pcapng: has packets without a time"):
        gathered([alone, other], tmp_path / "both", 4)


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
        gathered([late, early], tmp_path / "bad", 3)


def test_counts_and_texts_of_interfaces_are_those_of_the_capture(tmp_path: Path) -> None:
    texts = option(2, b"eth7") + option(12, b"Linux 7") + option(9, b"\x09") + option(0, b"")
    drops = block(5, struct.pack("<III", 0, 0, 9) + option(4, struct.pack("<Q", 500)) + option(5, struct.pack("<Q", 7)))
    file = tmp_path / "drops.pcapng"
    packets = b"".join(enhanced(START_NS + n, frame, length=2000) for n, (_, frame) in enumerate(crossing_packets()))
    file.write_bytes(section(options=option(4, b"dumpcap 5") + option(0, b"")) + interface(texts) + packets + drops)
    trace = gathered([file], tmp_path / "split", 3)
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
    trace = gathered([file], tmp_path / "split", 3)
    assert rows_of(trace) == rows_of(analyze(str(file)))
    shards = sorted((tmp_path / "split").glob("shard-*/*.zst"))
    shard_traces = [analyze(str(path), keep_packets=True) for path in shards]
    frames = [frame for shard_trace in shard_traces for frame in shard_trace.packets()["frame"]]
    assert sorted(frames) == list(range(1, 404))
    assert sum(path.stat().st_size for path in shards) < len(content) / 10
    read = [row["captured_bytes"] for shard_trace in shard_traces for row in shard_trace.interfaces.rows()]
    assert sum(read) < 70 * 1500 + 400 * 70  # the first 64 KiB, and headers


@pytest.fixture
def split(tmp_path: Path, wiretale_run: Any) -> Path:
    """A split of two samples by the command, whose shards were analyzed."""
    folder = tmp_path / "split"
    files = [SAMPLES / "tcp_losses.pcap", SAMPLES / "udp_fragments.pcap"]
    assert wiretale_run("split", *files, "-o", folder, "--shards", "3").returncode == 0
    for shard in range(3):
        steps.analyze_shard(folder, shard)
    return folder


def test_the_commands_write_the_files_of_one_run(tmp_path: Path, wiretale_run: Any) -> None:
    files = [SAMPLES / name for name in ("mirror_port.pcap", "damaged.pcap", "two_interfaces.pcapng")]
    folder = tmp_path / "split"
    assert wiretale_run("analyze", *files, "-o", tmp_path / "one", "--csv", "-q").returncode == 3
    planned = wiretale_run("split", *files, "-o", folder, "--shards", "4", "--plan")
    assert (planned.returncode, planned.stdout) == (0, "3\n")
    done = [wiretale_run("split", "-o", folder, "--only", n) for n in "012"]
    assert [process.returncode for process in done] == [0, 3, 0] and "damaged.pcap: at byte" in done[1].stderr
    for shard in range(4):
        done.append(wiretale_run("analyze", folder / f"shard-0{shard}"))
        assert (done[-1].returncode, done[-1].stderr) == (0, f"wiretale: wrote {folder}/rows/shard-0{shard}.rows\n")
    again = wiretale_run("analyze", folder / "shard-01")
    assert again.returncode == 0 and "analyzed before, nothing to do" in again.stderr
    gathered = wiretale_run("gather", folder, "-o", tmp_path / "several", "--csv")
    assert gathered.returncode == 3 and "damaged.pcap: at byte" in gathered.stderr
    written = sorted((tmp_path / "one").iterdir())
    assert len(written) == 2 * len(KEPT_TABLES) + 1
    for path in written:
        assert path.read_bytes() == (tmp_path / "several" / path.name).read_bytes(), path.name
    process = wiretale_run("analyze", *files, "--json", "--tables", "flows,events,findings")
    assert wiretale_run("gather", folder, "--json", "--tables", "flows,events,findings").stdout == process.stdout
    assert list((folder / "partial").iterdir()) == []


def test_a_shard_has_tables_of_its_own(split: Path, tmp_path: Path, wiretale_run: Any) -> None:
    for shard in range(3):
        assert wiretale_run("analyze", split / f"shard-0{shard}", "-o", tmp_path / f"{shard}", "-q").returncode == 0
    flow_counts = [analyze(str(split / f"shard-0{shard}")).totals["flows"] for shard in range(3)]
    assert sum(flow_counts) == steps.gather(split).totals["flows"]
    assert (tmp_path / "0" / "flows.parquet").exists()


@pytest.mark.parametrize(
    "options", [["--filter", "tcp"], ["--json"], ["--jsonl", "flows"], ["--all"], ["--cluster", "local"]]
)
def test_options_that_need_the_captures_are_refused(split: Path, wiretale_run: Any, options: list[str]) -> None:
    assert f"{options[0]} is not for a shard" in refusal(wiretale_run("analyze", split / "shard-00", *options))


def test_wrong_use_is_one_line(split: Path, tmp_path: Path, wiretale_run: Any) -> None:
    file, other = SAMPLES / "tcp_losses.pcap", SAMPLES / "keep_alives.pcapng"
    assert "expected --shards K" in refusal(wiretale_run("split", file, "-o", tmp_path / "x"))
    assert "has 3 shards, but 4" in refusal(wiretale_run("split", "-o", split, "--shards", "4"))
    assert "of other captures" in refusal(wiretale_run("split", other, "-o", split, "--shards", "3"))
    assert "repeated" in refusal(wiretale_run("split", "-", "-o", tmp_path / "x", "--shards", "3"))
    assert "number of a capture" in refusal(wiretale_run("split", "-o", split, "--only", "2"))
    assert "two steps" in refusal(wiretale_run("split", "-o", split, "--plan", "--only", "0"))
    assert "expected captures" in refusal(wiretale_run("split", "-o", tmp_path / "new"))
    for shard in (0, 2):
        (split / "rows" / f"shard-0{shard}.rows").unlink()
    assert "shard-00: not analyzed yet (and 1 more)" in refusal(wiretale_run("gather", split), 4)
    assert f"expected its split, {split}" in refusal(wiretale_run("gather", split / "shard-00"))
    assert "is a split" in refusal(wiretale_run("analyze", split))
    assert "give it alone" in refusal(wiretale_run("analyze", split / "shard-00", split / "shard-01"))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "note.txt").touch()
    assert "it has note.txt" in refusal(wiretale_run("split", file, "-o", tmp_path / "full", "--shards", "3"))
    assert "No such file" in refusal(wiretale_run("split", "no.pcap", "-o", tmp_path / "x", "--shards", "3"), 4)
    beneath = refusal(wiretale_run("split", file / "no.pcap", "-o", tmp_path / "x", "--shards", "3"), 4)
    assert beneath == f"{file}/no.pcap: Not a directory"  # the reason of the system, such as a permission
    assert "expected a split" in refusal(wiretale_run("gather", tmp_path / "full"), 4)


def test_outputs_are_refused_in_a_split_or_store(split: Path, tmp_path: Path, wiretale_run: Any) -> None:
    file, store = SAMPLES / "tcp_losses.pcap", tmp_path / "store"
    assert wiretale_run("store", "add", store, file, "-q").returncode == 0
    before = {path: path.stat().st_mtime_ns for folder in (split, store) for path in folder.rglob("*")}
    for words in (
        ("gather", split, "-o", split),
        ("analyze", split / "shard-00", "-o", split / "shard-01"),
        ("analyze", file, "-o", split / "new"),
    ):
        assert f"{split} is a split: expected another directory" in refusal(wiretale_run(*words, "-q"))
    assert f"{store} is a store: expected another directory" in refusal(wiretale_run("analyze", file, "-o", store))
    assert before == {path: path.stat().st_mtime_ns for folder in (split, store) for path in folder.rglob("*")}


def test_a_split_without_its_plan_is_not_analyzed(split: Path, wiretale_run: Any) -> None:
    plan = split / "split.json"
    content = plan.read_text()
    plan.write_text(content[:-9])
    assert "damaged: split again into another folder" in refusal(wiretale_run("gather", split), 4)
    plan.unlink()
    for shard in (split / "shard-00", "shard-00"):
        assert "has no split.json" in refusal(wiretale_run("analyze", shard, cwd=split), 4)


def test_the_outputs_of_analyze_are_those_of_gather(split: Path, tmp_path: Path, wiretale_run: Any) -> None:
    output = [wiretale_run(name, "--help").stdout.partition("output:")[2].partition("options:")[0] for name in COMMANDS]
    assert output[0] == output[1] and "--figure" in output[0]
    assert "flow 99" in refusal(wiretale_run("gather", split, "-q", "--figure", "99", "-o", tmp_path / "x.svg"))
    assert "expected a directory" in refusal(wiretale_run("gather", split, "-o", "s3://bucket/key"))


def test_a_limit_that_one_run_might_have_reached_is_an_error(split: Path, wiretale_run: Any) -> None:
    for shard in range(3):
        assert wiretale_run("analyze", split / f"shard-0{shard}", "--max-flows", "5", "-q").returncode == 0
        if not shard:
            assert "analyzed with other options" in refusal(wiretale_run("gather", split))
    message = refusal(wiretale_run("gather", split))
    assert (
        "the rows may not be those of one run" in message
        and " or fewer" in message
        and "--inexact accepts such rows" in message
    )
    assert wiretale_run("gather", split, "--inexact", "-q").returncode == 0


def check_selected(files: list[Path], folder: Path, shards: int, selection: dict[str, Any]) -> None:
    """Compares the three steps with one run."""
    layout.plan(list(map(str, files)), folder, shards, AnalysisOptions.of(selection))
    steps.split_captures(folder, "test")
    for shard in range(shards):
        steps.analyze_shard(folder, shard)
    several, expected = steps.gather(folder), analyze(*map(str, files), **selection)
    assert several.empty_range == expected.empty_range
    rows_gathered = rows_of(several)
    for name, rows in rows_of(expected).items():
        assert rows_gathered[name] == rows, (name, selection)


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
        for selection in ({"filter": "ip[8] & 1 = 0 or ip6"}, middle, {**middle, "filter": "greater 100"}):
            check_selected([file], tmp_path / f"{number}-{len(selection)}", 3, selection)


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


def test_a_selected_packet_behind_a_later_one_needs_a_split_of_its_own(tmp_path: Path) -> None:
    frames = [frame for _, frame in crossing_packets()]
    back = write_part(tmp_path / "back.pcap", [(0, frames[0]), (500, frames[1]), (100, frames[2]), (101, frames[3])])
    other = write_part(tmp_path / "other.pcap", [(50, frames[4]), (600, frames[5])])
    with pytest.raises(ValueError, match=r"back.pcap: has packets after one with a later time that --filter"):
        check_selected([back, other], tmp_path / "both", 3, {"end": START_NS + 400_000_000})
    check_selected([back], tmp_path / "alone", 3, {"end": START_NS + 400_000_000})


def test_the_commands_write_the_files_of_one_run_of_selected_packets(tmp_path: Path, wiretale_run: Any) -> None:
    files = [SAMPLES / name for name in ("tcp_losses.pcap", "udp_fragments.pcap", "two_interfaces.pcapng")]
    selection = ("-f", "not port 5001", "--start", "2026-01-15T12:00:00.010Z")
    assert wiretale_run("analyze", *files, *selection, "-o", tmp_path / "one", "-q").returncode == 0
    folder = tmp_path / "split"
    assert wiretale_run("split", *files, *selection, "-o", folder, "--shards", "3", "-q").returncode == 0
    assert wiretale_run("split", "-o", folder, *selection, "-q").returncode == 0
    for shard in range(3):
        assert wiretale_run("analyze", folder / f"shard-0{shard}", "-q").returncode == 0
    assert wiretale_run("gather", folder, "-o", tmp_path / "several", "-q").returncode == 0
    for path in sorted((tmp_path / "one").iterdir()):
        assert path.read_bytes() == (tmp_path / "several" / path.name).read_bytes(), path.name


def test_other_options_in_a_folder_and_wrong_ones_are_one_line(tmp_path: Path, wiretale_run: Any) -> None:
    file, folder = SAMPLES / "tcp_losses.pcap", tmp_path / "split"
    words = ("split", file, "-o", folder, "--shards", "2")
    assert wiretale_run(*words, "-f", "tcp", "--plan").returncode == 0
    for other in ((), ("-f", "udp"), ("-f", "tcp", "--end", "2026-01-15T12:00:00Z")):
        assert "with other --filter, --start or --end" in refusal(wiretale_run(*words, *other))
    assert "with other --filter" in refusal(wiretale_run("split", "-o", folder, "-f", "udp"))
    assert wiretale_run("split", "-o", folder, "-q").returncode == 0
    wrong = ("split", file, "-o", tmp_path / "new", "--shards", "2")
    assert "filter 'tpc'" in refusal(wiretale_run(*wrong, "-f", "tpc"))
    assert "start" in refusal(wiretale_run(*wrong, "--start", "2026-01-02", "--end", "2026-01-01"))
    assert not (tmp_path / "new").exists()


def test_a_report_names_the_folder_that_was_given(tmp_path: Path, wiretale_run: Any) -> None:
    folder, split = tmp_path / "captures", tmp_path / "split"
    folder.mkdir()
    for name in ("tcp_losses.pcap", "udp_fragments.pcap"):
        shutil.copy(SAMPLES / name, folder)
    assert wiretale_run("split", folder, "-o", split, "--shards", "1").returncode == 0
    assert wiretale_run("analyze", split / "shard-00").returncode == 0
    page = tmp_path / "page.html"
    for added in (False, True):
        if added:
            shutil.copy(SAMPLES / "timeouts.pcap", folder)
        assert wiretale_run("gather", split, "-q", "--report", page).returncode == 0
        names = [folder / "tcp_losses.pcap", folder / "udp_fragments.pcap"] if added else [folder]
        assert f"wiretale cut {' '.join(map(str, names))} --finding" in page.read_text()


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
    trace = gathered(files, tmp_path / "split", 7)
    assert {row["kind"] for row in trace.exchanges.rows()} == {"arp", "nd", "icmp_echo"}
    assert trace.neighbors.total("conflicts") or alternate
    assert rows_of(trace) == rows_of(analyze(*map(str, files)))
