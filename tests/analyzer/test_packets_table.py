# SPDX-License-Identifier: Apache-2.0
"""The packets table: the same rows however it is asked for, and an error where it was not made."""

from __future__ import annotations

import csv
import json
import shutil
import struct
import subprocess
import sys
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest
from scapy.layers.inet import ICMP, IP, UDP, fragment
from scapy.layers.l2 import Ether
from scapy.packet import Packet
from scapy.utils import wrpcap

import wiretale
from checkout import Run
from crafted import NEIGHBOR
from plain_wire import Connection, Wire
from processes import wait_until
from sample_sets import FEW_SAMPLES

FROM_STDIN = """\
import json, sys, wiretale
trace = wiretale.analyze("-", keep_packets=sys.argv[1] == "keep")
try:
    print(json.dumps([trace.packets().rows(), trace.packets(0).rows(), trace.query("SELECT frame FROM packets").fetchall()]))
except wiretale.UsageError as error:
    print(json.dumps(str(error)))
trace.report(sys.argv[2])
"""


def json_rows(run: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    assert run.returncode in (0, 3) and json.loads(run.stdout)["schema"] == "wiretale.analyze/3"
    return list(json.loads(run.stdout)["packets"])


@FEW_SAMPLES
def test_a_file_and_standard_input_have_the_same_packets(wiretale_run: Run, sample: Path) -> None:
    options = ("--json", "--tables", "packets", "-q")
    of_file = json_rows(wiretale_run("analyze", sample, *options))
    with sample.open("rb") as stream:
        of_stdin = json_rows(wiretale_run("analyze", "-", *options, stdin=stream))
    trace = wiretale.analyze(sample)
    assert of_file == of_stdin == trace.packets().rows() == trace.table("packets").rows()
    assert of_file == wiretale.analyze(sample, keep_packets=True).packets().rows()
    assert trace.query("select count(*) from Packets").fetchall() == [(len(of_file),)]
    assert len(of_file) == sum(trace.flows.column("packets"))


def test_packets_as_csv(wiretale_run: Run, samples: Path, tmp_path: Path) -> None:
    run = wiretale_run("analyze", samples / "timeouts.pcap", "--csv", "--tables", "packets")
    assert len(list(csv.DictReader(run.stdout.splitlines()))) == 251
    run = wiretale_run("analyze", samples / "timeouts.pcap", "--tables", "packets", "--json", "-o", tmp_path / "out")
    assert len(json_rows(run)) == 251 and (tmp_path / "out" / "report.html").exists()


@pytest.fixture(scope="module")
def long_capture(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A capture of more packets than memory keeps, and their number. Some are fragments: of a datagram whose first one follows
    the second, and of one whose first one is missing, so that its flow begins at the end of the capture."""
    path, count = tmp_path_factory.mktemp("long") / "long.pcap", 2_100_000
    ends = IP(src="10.0.0.1", dst="10.0.0.2")
    frames = dict.fromkeys(range(count), bytes(Ether(dst=NEIGHBOR) / ends / UDP(sport=5000, dport=6000) / b"x"))
    parts = fragment(ends / UDP(sport=5000, dport=6000) / bytes(4000), fragsize=1480)
    orphan = fragment(
        IP(src="10.0.0.3", dst="10.0.0.2", id=7) / UDP(sport=5000, dport=6000) / bytes(4000), fragsize=1480
    )[1]
    for place, part in ((100, parts[1]), (50_000, parts[0]), (1_500_000, parts[2]), (count - 2, orphan)):
        frames[place] = bytes(Ether(dst=NEIGHBOR) / part)
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    records = (
        struct.pack("<IIII", 1000 + i // 10**6, i % 10**6, len(frame), len(frame)) + frame
        for i, frame in frames.items()
    )
    path.write_bytes(head + b"".join(records))
    return path, count


def test_more_packets_than_memory_keeps_are_all_written(
    wiretale_run: Run, long_capture: tuple[Path, int], tmp_path: Path
) -> None:
    path, count = long_capture
    run = wiretale_run("analyze", path, "--tables", "packets", "-q", "-o", tmp_path / "out")
    assert (run.returncode, run.stderr) == (0, "")
    packets = str(tmp_path / "out" / "packets.parquet")
    late = "frame NOT IN (101, 2099999)"  # a row is written when the flow of its fragment is known
    rises = f"SELECT bool_and(frame > before) FROM (SELECT frame, lag(frame) OVER () AS before FROM '{packets}' WHERE {late})"
    sums = f"SELECT count(*), count(DISTINCT frame), min(frame), max(frame), ({rises}) FROM '{packets}'"
    assert duckdb.sql(sums).fetchall() == [(count, count, 1, count, True)]
    with subprocess.Popen(
        [sys.executable, "-m", "wiretale", "analyze", path, "--json", "--tables", "packets"], stdout=subprocess.PIPE
    ) as json_run:
        assert json_run.stdout
        lines = sum(line.startswith(b'{"flow":') for line in json_run.stdout)
    assert (json_run.returncode, lines) == (0, count)


def test_a_capture_that_changes_while_packets_are_written_is_an_error(
    long_capture: tuple[Path, int], tmp_path: Path
) -> None:
    path = Path(shutil.copy(long_capture[0], tmp_path / "mine.pcap"))
    words = [sys.executable, "-m", "wiretale", "analyze", path, "--tables", "packets", "-q", "-o", tmp_path / "out"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as run:
        wait_until(lambda: list((tmp_path / "out").glob(".partial-*")), "tables are written")
        path.touch()
        _, errors = run.communicate(timeout=300)
    assert run.returncode == 4 and errors.startswith(f"wiretale: {path}: changed since it was analyzed")
    assert not (tmp_path / "out").exists()


def test_standard_input_has_as_many_packets_as_memory_keeps(
    wiretale_run: Run, long_capture: tuple[Path, int], tmp_path: Path
) -> None:
    with long_capture[0].open("rb") as stream:
        run = wiretale_run("analyze", "-", "--tables", "packets", "-q", "-o", tmp_path / "out", stdin=stream)
    assert run.returncode == 0 and "100,000 packets are not in it" in run.stderr


@pytest.mark.parametrize("name", ["timeouts.pcap", "-"])
def test_a_folder_of_results_has_the_packets_on_request(
    wiretale_run: Run, samples: Path, tmp_path: Path, name: str
) -> None:
    def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
        with (samples / "timeouts.pcap").open("rb") as stream:
            return wiretale_run("analyze", samples / name if name != "-" else name, *words, stdin=stream)

    assert run("-o", tmp_path / "plain", "-q").returncode == 0
    assert not list((tmp_path / "plain").glob("packets.*"))
    assert run("-o", tmp_path / "more", "--tables", "packets", "-q").returncode == 0
    assert (tmp_path / "more" / "flows.parquet").exists() and not list((tmp_path / "more").glob("*.csv"))
    parquet = str(tmp_path / "more" / "packets.parquet")
    assert duckdb.sql(f"SELECT count(*) FROM '{parquet}'").fetchall() == [(251,)]
    assert run("-o", tmp_path / "both", "--csv", "--tables", "packets,flows", "-q").returncode == 0
    assert len(list(csv.DictReader((tmp_path / "both" / "packets.csv").read_text().splitlines()))) == 251
    refused = run("-o", tmp_path / "other", "--csv", "--tables", "flows")
    assert refused.returncode == 2 and "-o DIR has every table but packets; only packets can be added" in refused.stderr
    assert not (tmp_path / "other").exists()


def from_stdin(capture: Path, keep: str, folder: Path) -> Any:
    with capture.open("rb") as stream:
        command = [sys.executable, "-c", FROM_STDIN, keep, str(folder / "page.html")]
        run = subprocess.run(command, stdin=stream, capture_output=True, text=True, timeout=60, check=True)
    assert (folder / "page.html").exists()  # also without packets
    return json.loads(run.stdout)


def test_kept_packets_are_chosen_by_flow(samples: Path, tmp_path: Path) -> None:
    every, first, queried = from_stdin(samples / "fast_retransmissions.pcap", "keep", tmp_path)
    assert (len(every), len(first), len(queried)) == (563, 186, 563)
    assert first == [row for row in every if row["flow"] == 0]
    trace_with_packets = wiretale.analyze(samples / "fast_retransmissions.pcap", keep_packets=True)
    assert trace_with_packets.packets(0).rows() == first and trace_with_packets.packets([2, 0]).rows() == [
        r for r in every if r["flow"] != 1
    ]
    assert trace_with_packets.packets([0], most=5).rows() == first[:5] and len(trace_with_packets.packets([])) == 0


def test_a_table_that_was_not_made_is_an_error(samples: Path, tmp_path: Path) -> None:
    error = from_stdin(samples / "timeouts.pcap", "drop", tmp_path)
    assert "the packets table was not made" in error and "keep_packets=True" in error
    with pytest.raises(wiretale.UsageError, match="not made"):
        wiretale.analyze(samples / "timeouts.pcap", interfaces_only=True).packets()


@pytest.mark.parametrize("how", ["replaced", "rewritten", "grown"])
def test_a_file_that_changed_has_no_packets_of_another(samples: Path, tmp_path: Path, how: str) -> None:
    file, other = tmp_path / "a.pcap", tmp_path / "b.pcap"
    shutil.copy(samples / "timeouts.pcap", file)
    shutil.copy(samples / "tcp_losses.pcap", other)
    trace, trace_with_packets = wiretale.analyze(file), wiretale.analyze(file, keep_packets=True)
    assert len(trace.packets()) == 251
    if how == "replaced":
        other.replace(file)
    elif how == "rewritten":
        file.write_bytes(other.read_bytes())
    else:
        with file.open("ab") as stream:
            stream.write(other.read_bytes()[24:])
    for read in (trace.packets, lambda: trace.query("select count(*) from packets")):
        with pytest.raises(wiretale.InputError, match=r"a\.pcap: changed since it was analyzed"):
            read()
    assert trace.report(tmp_path / "page.html").exists()  # without packets, as of a pipe
    assert len(trace_with_packets.packets()) == 251


def test_only_a_query_for_packets_reads_again(samples: Path, tmp_path: Path) -> None:
    copy = shutil.copy(samples / "timeouts.pcap", tmp_path / "gone.pcap")
    trace, trace_with_packets = wiretale.analyze(copy), wiretale.analyze(copy, keep_packets=True)
    Path(copy).unlink()
    assert trace.query("select sum(packets) from flows").fetchall() == [(251,)]
    assert trace_with_packets.query("select count(*) from packets").fetchall() == [(251,)]
    with pytest.raises(wiretale.InputError, match="gone"):
        trace.query("select count(*) from packets")
    with pytest.raises(wiretale.InputError, match="gone"):
        trace.packets()


@pytest.mark.parametrize("keep", [False, True])
def test_rows_beyond_the_limit_are_counted(samples: Path, keep: bool) -> None:
    trace = wiretale.analyze(samples / "timeouts.pcap", keep_packets=keep)
    assert len(trace.packets()) == 251 and trace.totals["packets_rows_dropped"] == 0
    assert len(trace.packets(most=100)) == 100 and trace.totals["packets_rows_dropped"] == 151
    assert len(trace.packets(most=0)) == 0 and trace.totals["packets_rows_dropped"] == 251


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("flows", [-1, [-1], [3], 2**70, "0", 1.5, [[0]], object()])
def test_flows_that_are_none_are_refused(samples: Path, flows: Any, keep: bool) -> None:
    trace = wiretale.analyze(samples / "timeouts.pcap", keep_packets=keep)
    with pytest.raises(wiretale.UsageError, match="expected"):
        trace.packets(flows)
    with pytest.raises(wiretale.UsageError, match="expected a number of rows"):
        trace.packets(0, most=-1)


def test_arguments_are_taken_as_people_have_them(samples: Path, tmp_path: Path) -> None:
    capture, begin = samples / "timeouts.pcap", "2026-01-15T12:00:00.1Z"
    later = wiretale.analyze(capture, start=begin).packets().rows()
    assert 0 < len(later) < 251
    for start in (datetime(2026, 1, 15, 12, 0, 0, 100_000, UTC), datetime(2026, 1, 15, 12, 0, 0, 100_000)):
        assert wiretale.analyze(capture, start=start).packets().rows() == later
    assert wiretale.analyze(capture).report(tmp_path / "page.html", "1G").exists()
    wrong: list[tuple[Any, dict[str, Any]]] = [(7, {}), (capture, {"start": 1.5})]
    for path, options in wrong:
        with pytest.raises(wiretale.UsageError, match="expected"):
            wiretale.analyze(path, **options)
    rates: tuple[Any, ...] = ("fast", -1, [])
    for rate in rates:
        with pytest.raises(wiretale.UsageError):
            wiretale.analyze(capture).report(tmp_path / "page.html", rate)
    assert issubclass(wiretale.OutputError, wiretale.WiretaleError) and "OutputError" in wiretale.__all__


def test_bytes_in_flight_of_both_directions(tmp_path: Path) -> None:
    """Answers acknowledge requests, a lost segment is sent again, and a late ACK takes nothing back."""
    talk = Connection(Wire()).open(0.0)
    talk.data(30.0, 0, 500)
    talk.send(50.0, 1, 0, 1000, ack=500).send(51.0, 1, 1000, 1000, ack=500)
    talk.send(52.0, 0, 500, ack=1000)
    talk.send(60.0, 0, 500, 300, ack=2000)  # a request that acknowledges the answer
    talk.send(80.0, 1, 3000, 1000, ack=800).send(
        300.0, 1, 2000, 1000, ack=800
    )  # 2000 was lost before the capture point
    talk.send(310.0, 0, 800, ack=4000).send(311.0, 0, 800, ack=2000)
    packets = wiretale.analyze(talk.wire.write(tmp_path / "talk.pcap")).packets(0).rows()
    flights = [(row["flight_bytes"], row["opposite_flight_bytes"]) for row in packets[3:]]
    assert flights == [
        *[(500, 0), (1000, 0), (2000, 0), (0, 1000), (300, 0)],
        *[(2000, 0), (2000, 0), (0, 0), (0, 0)],
    ]


def talk_of(client: str, port: int, at: float, count: int = 3) -> list[Packet]:
    packets = [IP(src=client, dst="10.9.0.1") / UDP(sport=port, dport=53) / bytes([k] * 40) for k in range(count)]
    for k, packet in enumerate(packets):
        packet.time = at + k / 10
    return packets


def test_the_second_reading_skips_other_flows_without_changing_a_row(tmp_path: Path) -> None:
    """Pairs of addresses influence each other by the clock, by ICMP errors and by limits alone."""
    talks = [talk_of(f"10.0.0.{n % 20 + 1}", 1000 + n % 7, 40 * n) for n in range(200)]  # ports that are used again
    errors = [IP(src="10.8.0.1", dst=talk[0][IP].src) / ICMP(type=3, code=1) / talk[0].copy() for talk in talks[::9]]
    for error, talk in zip(errors, talks[::9], strict=True):
        error.time = talk[-1].time + 0.05
    large = talk_of("10.0.0.3", 9000, 5555, 1)[0] / bytes(4000)
    pieces = fragment(large, 1000)
    for k, piece in enumerate(pieces):
        piece.time = 5555 + k / 100
    path = tmp_path / "pairs.pcap"
    wrpcap(str(path), sorted([p for talk in talks for p in talk] + errors + pieces, key=lambda p: float(p.time)))
    for options in ({}, {"max_flows": 3}, {"filter": "udp"}):
        trace_with_packets, trace = (
            wiretale.analyze(path, keep_packets=True, **options),
            wiretale.analyze(path, **options),
        )
        every = trace_with_packets.packets().rows()
        assert trace.totals["flows"] > 100 and {row["flow"] for row in every} == set(range(trace.totals["flows"]))
        for flows in ([0], [17, 90], [trace.totals["flows"] - 1], list(range(0, trace.totals["flows"], 11))):
            of_flows = [row for row in every if row["flow"] in flows]
            assert trace.packets(flows).rows() == of_flows != [], (options, flows)


def test_each_flow_of_the_samples_is_read_again_as_it_was_kept(samples: Path) -> None:
    for path in sorted(samples.glob("*.pcap*")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", wiretale.DamagedInputWarning)
            trace_with_packets, trace = wiretale.analyze(path, keep_packets=True), wiretale.analyze(path)
        every = trace_with_packets.packets().rows()
        for flow in range(min(8, trace.totals["flows"])):
            assert trace.packets(flow).rows() == [row for row in every if row["flow"] == flow], (path, flow)
            assert trace.time_spans(flow).rows() == trace_with_packets.time_spans(flow).rows(), (path, flow)
