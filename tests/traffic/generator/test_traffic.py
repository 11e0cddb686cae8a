# SPDX-License-Identifier: Apache-2.0
"""wiretale-traffic on the loopback: data arrives, is counted, and both ends report the same."""

from __future__ import annotations

import csv
import json
import re
import subprocess
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from traffic_ends import Receiver, Report, program, receiving, send, send_raw, undisturbed
from wiretale.version import __version__

pytestmark = pytest.mark.xdist_group("live")


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    with receiving(tmp_path_factory.mktemp("receiver")) as running:
        yield running


def assert_all_arrived(report: Report, blocks: int) -> None:
    counts = {name: report[f"blocks_{name}"] for name in ("sent", "received", "lost", "duplicate", "corrupt")}
    assert counts == {"sent": blocks, "received": blocks, "lost": 0, "duplicate": 0, "corrupt": 0}
    assert report["bytes_sent"] == report["bytes_received"]


@pytest.mark.parametrize("streams", [1, 8])
@pytest.mark.parametrize("protocol", ["--tcp", "--udp"])
def test_every_block_arrives(receiver: Receiver, protocol: str, streams: int) -> None:
    before = len(receiver.reports())
    options = [protocol, "--size", "1000", "--count", "200", "--streams", str(streams), "--rate", "20M"]
    report = send(receiver.port, *options)
    assert_all_arrived(report, 200 * streams)
    assert report["bytes_sent"] == 200 * streams * 1000
    assert [stream["blocks_received"] for stream in report["receiver"]["streams"]] == [200] * streams
    there = receiver.wait_reports(before + 1)[before]
    for member in ("blocks_sent", "blocks_received", "bytes_received", "complete"):
        assert there[member] == report[member]
    assert there["receiver"] | {"host_udp_buffer_errors": 0} == report["receiver"] | {"host_udp_buffer_errors": 0}
    assert there["test"]["run"] == report["test"]["run"]


def study_sizes() -> list[int]:
    sweep = files("wiretale.traffic.experiment").joinpath("published", "controller_sweep.csv").read_text("utf-8")
    return sorted({int(row["block_bytes"]) for row in csv.DictReader(sweep.splitlines())})


@pytest.mark.parametrize("protocol", ["--tcp", "--udp"])
def test_all_sizes_of_the_controller_study(receiver: Receiver, protocol: str) -> None:
    sizes = study_sizes()
    assert len(sizes) == 18 and (sizes[0], sizes[-1]) == (32, 8204)
    for size in sizes:
        report = send(receiver.port, protocol, "--size", str(size), "--count", "40", "--rate", "4000pps")
        assert_all_arrived(report, 40)
        assert report["bytes_received"] == 40 * size


@pytest.mark.parametrize("size", [32, 33, 39, 40, 41, 1472, 65507])
def test_udp_blocks_of_odd_sizes(receiver: Receiver, size: int) -> None:
    assert_all_arrived(send(receiver.port, "--udp", "--size", str(size), "--count", "20", "--rate", "500pps"), 20)


@pytest.mark.parametrize("size", ["32", "61", "65536", "262143", "3000001"])
def test_tcp_blocks_larger_and_smaller_than_buffers(receiver: Receiver, size: str) -> None:
    assert_all_arrived(send(receiver.port, "--size", size, "--count", "7", "--streams", "2"), 14)


def test_lists_and_ranges_of_sizes_go_round(receiver: Receiver) -> None:
    for protocol in ("--udp", "--tcp"):
        report = send(receiver.port, protocol, "--size", "64,100-120:10,1472", "--count", "10", "--rate", "1000pps")
        assert report["test"]["sizes"] == [64, 100, 110, 120, 1472]
        assert_all_arrived(report, 10)
        assert report["bytes_received"] == 2 * (64 + 100 + 110 + 120 + 1472)


def test_ipv6(receiver: Receiver) -> None:
    for protocol in ("--udp", "--tcp"):
        report = send(receiver.port, protocol, "--count", "50", "--rate", "1000pps", host="::1")
        assert_all_arrived(report, 50)
        assert report["test"]["address"] == "::1"
    assert_all_arrived(send(receiver.port, "--udp", "--size", "65527", "--count", "3", host="::1"), 3)


def test_a_name_is_an_address(receiver: Receiver) -> None:
    assert_all_arrived(send(receiver.port, "-4", "--count", "3", host="localhost"), 3)


@pytest.mark.parametrize("protocol", ["--tcp", "--udp"])
def test_reverse_sends_back(receiver: Receiver, protocol: str) -> None:
    before = len(receiver.reports())
    report = send(receiver.port, protocol, "--reverse", "--size", "1000", "--count", "100", "--rate", "10M", "-P", "2")
    assert_all_arrived(report, 200)
    assert "reverse_sender" not in report and report["test"]["direction"] == "reverse"
    there = receiver.wait_reports(before + 1)[before]
    assert there["sender"]["blocks_sent"] == report["receiver"]["blocks_received"] == 200


@pytest.mark.parametrize("protocol", ["--tcp", "--udp"])
def test_both_ways_are_kept_apart(receiver: Receiver, protocol: str) -> None:
    report = send(receiver.port, protocol, "--both", "--size", "500", "--count", "60", "--rate", "2M")
    assert_all_arrived(report, 120)
    for member in ("sender", "reverse_sender"):
        assert report[member]["blocks_sent"] == 60
    for member in ("receiver", "reverse_receiver"):
        assert report[member]["blocks_received"] == 60


def test_bytes_are_sent_in_whole_blocks(receiver: Receiver) -> None:
    report = send(receiver.port, "--bytes", "10001", "--size", "1000")
    assert_all_arrived(report, 11)


def test_time_ends_a_test(receiver: Receiver) -> None:
    def check() -> None:
        report = send(receiver.port, "--udp", "--time", "400ms", "--rate", "1M", "--size", "500")
        assert 95 <= report["blocks_sent"] <= 101 and report["blocks_lost"] == 0
        assert report["sender"]["elapsed_s"] == pytest.approx(0.4, abs=0.05)

    undisturbed(check)


@pytest.mark.parametrize(
    ("rate", "size", "seconds"), [("10k", 50, 1.6), ("1.9M", 1000, 1.0), ("50M", 1472, 1.0), ("2000pps", 64, 1.0)]
)
@pytest.mark.parametrize("protocol", ["--tcp", "--udp"])
def test_the_rate_asked_for_is_the_rate_sent(
    receiver: Receiver, protocol: str, rate: str, size: int, seconds: float
) -> None:
    expected = {"10k": 10e3, "1.9M": 1.9e6, "50M": 50e6, "2000pps": 2000 * size * 8.0}[rate]

    def check() -> None:
        report = send(receiver.port, protocol, "--rate", rate, "--size", str(size), "--time", str(seconds))
        # The last block's share of time is not over when it is sent.
        sent = (report["sender"]["bytes_sent"] - size) * 8 / report["sender"]["elapsed_s"]
        assert sent == pytest.approx(expected, rel=0.01)
        assert report["test"]["pacing"] == "constant"

    undisturbed(check)


def test_poisson_keeps_the_mean_and_bursts_come_together(receiver: Receiver) -> None:
    def poisson() -> None:
        report = send(receiver.port, "--udp", "--rate", "4000pps", "--poisson", "--size", "64", "--count", "4000")
        assert report["sender"]["elapsed_s"] == pytest.approx(1.0, rel=0.1)  # 6 standard deviations

    def bursts() -> None:
        report = send(receiver.port, "--udp", "--rate", "1000pps", "--burst", "100", "--size", "64", "--count", "500")
        assert report["sender"]["elapsed_s"] == pytest.approx(0.4, abs=0.05)

    undisturbed(poisson)
    undisturbed(bursts)


def test_staggered_streams_start_one_after_the_other(receiver: Receiver) -> None:
    options = ["--udp", "-P", "3", "--count", "5", "--rate", "1000pps"]

    def check() -> None:
        report = send(receiver.port, *options, "--start-offset", "100ms", "--stagger", "200ms")
        begun = [(stream["first_ns"] - report["start_ns"]) / 1e9 for stream in report["sender"]["streams"]]
        assert begun == [pytest.approx(0.1 + 0.2 * i, abs=0.08) for i in range(3)]

    undisturbed(check)


def test_intervals_add_up_to_the_whole(receiver: Receiver) -> None:
    done = send_raw(receiver.port, "--udp", "--rate", "1000pps", "--time", "1", "--interval", "100ms")
    *lines, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) >= 4 and {line["schema"] for line in lines} == {"wiretale.interval/1"}
    assert last["schema"] == "wiretale.send/1"
    assert sum(line["blocks_sent"] for line in lines) == last["blocks_sent"]
    assert [line["from_s"] for line in lines[1:]] == [line["to_s"] for line in lines[:-1]]


def test_tcp_reports_the_kernel_s_figures(receiver: Receiver) -> None:
    done = send_raw(receiver.port, "--time", "1", "--rate", "10M", "--size", "10000", "--interval", "100ms")
    report = json.loads(done.stdout.splitlines()[-1])
    samples = report["sender"]["tcp_info"]
    assert len(samples) >= 3
    for member in ("rtt_us", "rttvar_us", "cwnd", "retransmissions", "delivery_rate_bps"):
        assert member in samples[-1]
    assert samples[-1]["cwnd"] > 0 and samples[-1]["mss"] > 0
    assert report["sender"]["cpu_user_s"] + report["sender"]["cpu_system_s"] > 0


def test_udp_reports_jitter_and_drops_of_the_host(receiver: Receiver) -> None:
    got = send(receiver.port, "--udp", "--rate", "500pps", "--count", "100")["receiver"]
    assert 0 < got["jitter_ns"] < 50_000_000
    assert (got["host_dropped"], got["host_dropped_source"]) == (0, "SO_MEMINFO")


def test_a_receiver_that_is_overrun_says_so(tmp_path: Path) -> None:
    """The smallest of buffers, and bursts: all missing blocks were dropped by this host."""
    with receiving(tmp_path) as running:
        options = ["--udp", "--size", "1472", "--count", "20000", "--buffer", "4096"]
        report = json.loads(send_raw(running.port, *options).stdout)
    assert report["blocks_lost"] > 0
    assert report["receiver"]["host_dropped"] == report["blocks_lost"]


@pytest.mark.parametrize("protocol", ["--tcp", "--udp"])
def test_a_file_arrives_whole(tmp_path: Path, protocol: str) -> None:
    source, folder = tmp_path / "source.bin", tmp_path / "incoming"
    folder.mkdir()
    source.write_bytes(bytes(range(256)) * 4000 + b"the end")
    with receiving(tmp_path, "--output-dir", str(folder)) as running:
        report = send(running.port, protocol, "--file", str(source), "--size", "1400", "--rate", "20M")
        there = running.wait_reports(1)[0]
    assert (folder / "source.bin").read_bytes() == source.read_bytes()
    assert [path.name for path in folder.iterdir()] == ["source.bin"]
    assert report["file"]["same"] is True and there["file"]["written"] is True
    checksum = subprocess.run(["b2sum", "-l", "256", str(source)], capture_output=True, text=True).stdout.split()[0]
    assert report["file"]["checksum"] == report["file"]["checksum_there"] == checksum


def test_a_file_is_only_compared_without_a_folder(receiver: Receiver, tmp_path: Path) -> None:
    source = tmp_path / "some.txt"
    source.write_text("a few words\n")
    assert send(receiver.port, "--file", str(source))["file"]["same"] is True


def test_standard_input_to_standard_output(tmp_path: Path) -> None:
    data = bytes(range(251)) * 999
    with receiving(tmp_path, "--stdout", "--once") as running:
        done = send_raw(running.port, "--file", "-", "--size", "1000", stdin=data)
        assert done.returncode == 0, done.stderr
        assert running.process.wait(timeout=10) == 0
        assert running.out.read_bytes() == data


@pytest.mark.parametrize("protocol", ["--tcp", "--udp"])
def test_options_of_the_socket(receiver: Receiver, protocol: str) -> None:
    options = ["--dscp", "ef", "--ttl", "9", "--df", "do", "--buffer", "64KiB", "--no-delay", "--mss", "1000"]
    report = send(receiver.port, protocol, *options, "--congestion", "reno", "--count", "20", "--bind", "127.0.0.1")
    test = report["test"]
    assert (test["dscp"], test["ttl"], test["df"], test["buffer_bytes"]) == (46, 9, "do", 65536)
    if protocol == "--tcp":
        assert report["sender"]["tcp_info"][-1]["mss"] <= 1000


def test_offload_sends_the_same_blocks(receiver: Receiver) -> None:
    report = send(receiver.port, "--udp", "--offload", "--size", "1000", "--count", "500", "--rate", "80M")
    assert_all_arrived(report, 500)


def test_the_table_for_people(receiver: Receiver) -> None:
    command = [program(), "send", "127.0.0.1", "--port", str(receiver.port), "--count", "10", "-f", "K"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0
    assert re.match(r"10 of 10 blocks arrived over TCP: [\d.]+ KB/s for [\d.]+ \ws\.\n", done.stdout), done.stdout
    assert "0 lost" in done.stdout and "10 blocks" in done.stdout and max(map(len, done.stdout.splitlines())) <= 80


def test_too_large_for_ipv6() -> None:
    done = send_raw(9, "--udp", "--size", "65528", host="::1")
    assert done.returncode == 2 and b"65527" in done.stderr


def test_a_host_without_receiver_is_one_line() -> None:
    done = send_raw(9, "--count", "1")
    assert done.returncode == 4 and done.stderr.count(b"\n") == 1
    assert b"refused" in done.stderr


def test_version_is_the_projects() -> None:
    output = subprocess.run([program(), "--version"], capture_output=True, text=True, timeout=10).stdout
    assert output == f"wiretale-traffic {__version__}\n"
