# SPDX-License-Identifier: Apache-2.0
"""wiretale-traffic over a path that drops, and the results of `wiretale analyze` for a capture at its receiver."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wiretale
from dropping_path import ON_ONE, RECEIVER, DroppingPath
from processes import wait_until
from traffic_ends import Report, program, receiving, send, send_raw, sending

pytestmark = pytest.mark.xdist_group("counted")

Row = dict[str, Any]
TO_RECEIVER = "ip daddr 10.213.2.1"
PORT = 41236
TWICE = (
    "add table ip twice; add chain ip twice pre { type filter hook prerouting priority 0; }; "
    "add rule ip twice pre iifname left udp dport > 0 numgen random mod 1000 < 60 dup to 10.213.2.1 device right"
)

QUIET = (
    "add table inet quiet; add counter inet quiet datagrams; "
    "add chain inet quiet pre { type filter hook prerouting priority -300; }; "
    "add rule inet quiet pre iifname right meta l4proto udp counter name datagrams"
)


def run(path: DroppingPath, folder: Path, *options: str) -> tuple[Report, Path]:
    """A test from the sender's namespace to the receiver's, captured there."""
    file = folder / "receiver.pcap"
    inside = tuple(path.inside(path.receiver))
    with receiving(folder, "--once", inside=inside, port=PORT), path.capturing(path.receiver, file):
        report = send(PORT, *options, host=RECEIVER, inside=tuple(path.inside(path.sender, *ON_ONE)))
    return report, file


def block_rows(file: Path) -> list[Row]:
    """Directions with blocks, as the analyzer found them."""
    trace = wiretale.analyze(file)
    return [row for row in trace.directions.rows() if row["blocks"]]


def total(rows: list[Row], column: str) -> int:
    return sum(row[column] or 0 for row in rows)


@pytest.mark.parametrize("streams", [1, 8])
def test_udp_without_loss_is_counted_alike(path: DroppingPath, tmp_path: Path, streams: int) -> None:
    path.disturb("udp dport > 0", dropped=0)
    options = ["--udp", "--size", "200", "--count", "300", "--rate", "2M", "--streams", str(streams)]
    report, file = run(path, tmp_path, *options)
    rows = block_rows(file)
    assert len(rows) == streams
    assert report["blocks_received"] == total(rows, "blocks") == 300 * streams
    for column in ("blocks_lost", "blocks_duplicate", "blocks_corrupt"):
        assert report[column] == total(rows, column) == 0, column
    assert report["blocks_out_of_order"] == total(rows, "blocks_out_of_order")


@pytest.mark.parametrize("streams", [1, 8])
def test_losses_equal_the_drops_of_the_path(path: DroppingPath, tmp_path: Path, streams: int) -> None:
    path.disturb(f"{TO_RECEIVER} udp dport > 0", dropped=100)
    options = ["--udp", "--size", "200", "--count", str(1600 // streams), "--rate", "3M", "--streams", str(streams)]
    report, file = run(path, tmp_path, *options)
    rows = block_rows(file)
    assert report["blocks_sent"] == 1600
    assert report["blocks_lost"] == path.dropped() > 80
    assert report["receiver"]["host_dropped"] == 0  # it was the path
    assert report["blocks_received"] == total(rows, "blocks")
    # Blocks sent after the last one that arrived are known to the sender alone.
    assert report["receiver"]["blocks_missing"] == total(rows, "blocks_lost") + before_the_first(file)
    for column in ("blocks_duplicate", "blocks_corrupt"):
        assert report[column] == total(rows, column) == 0, column
    assert report["blocks_out_of_order"] == total(rows, "blocks_out_of_order")
    # One in ten is dropped: seven in a row at the end once in 10^7 times.
    assert report["blocks_lost"] - report["receiver"]["blocks_missing"] <= 6 * streams


def before_the_first(file: Path) -> int:
    """Blocks that were dropped before the first one that came: a capture cannot know of them either."""
    first: dict[int, int] = {}
    for row in wiretale.analyze(file).blocks.rows():
        first.setdefault(row["flow"], row["sequence"])
    return sum(first.values())


def test_reordering_is_counted_alike(path: DroppingPath, tmp_path: Path) -> None:
    path.disturb(f"{TO_RECEIVER} udp dport > 0", dropped=20, slow=50)
    report, file = run(path, tmp_path, "--udp", "--size", "500", "--count", "2500", "--rate", "8M")
    rows = block_rows(file)
    assert report["blocks_out_of_order"] == total(rows, "blocks_out_of_order") > 0
    assert report["blocks_lost"] == path.dropped() > 5
    assert report["blocks_received"] == total(rows, "blocks")
    assert report["blocks_duplicate"] == total(rows, "blocks_duplicate") == 0


def test_duplicates_are_counted_alike(path: DroppingPath, tmp_path: Path) -> None:
    path.disturb(f"{TO_RECEIVER} udp dport > 0", dropped=0)
    command = [*path.inside(path.router), "nft", TWICE]
    made = subprocess.run(command, capture_output=True, text=True, timeout=10)
    if made.returncode:
        pytest.skip(f"nftables cannot duplicate here: {made.stderr.strip()}")
    try:
        report, file = run(path, tmp_path, "--udp", "--size", "300", "--count", "1000", "--rate", "4M")
    finally:
        path.run(path.router, "nft", "delete table ip twice")
    rows = block_rows(file)
    assert report["blocks_duplicate"] == total(rows, "blocks_duplicate") > 20
    assert report["blocks_lost"] == 0 and report["blocks_received"] == 1000


@pytest.mark.parametrize("streams", [1, 8])
def test_tcp_repairs_drops_of_the_path(path: DroppingPath, tmp_path: Path, streams: int) -> None:
    # Of 550 segments or more; none is dropped once in 10^7 times.
    path.disturb(f"{TO_RECEIVER} tcp dport {PORT} meta length > 400", dropped=30)
    options = ["--size", "1000", "--count", str(800 // streams), "--streams", str(streams)]
    report, file = run(path, tmp_path, *options)
    rows = block_rows(file)
    assert len(rows) == streams
    assert report["blocks_received"] == total(rows, "blocks") == 800
    assert path.dropped() > 0
    assert max(stream["retransmissions"] for stream in report["sender"]["tcp_info"]) > 0
    for column in ("blocks_lost", "blocks_corrupt", "blocks_duplicate"):
        assert report[column] == total(rows, column) == 0, column


def test_reverse_is_found_in_the_capture(path: DroppingPath, tmp_path: Path) -> None:
    path.disturb("udp dport > 0", dropped=0)
    for protocol in ("--udp", "--tcp"):
        report, file = run(path, tmp_path, protocol, "--reverse", "--size", "300", "--count", "200", "--rate", "3M")
        (row,) = block_rows(file)
        assert report["blocks_received"] == row["blocks"] == 200


def test_blocks_of_several_sizes_and_no_offload(path: DroppingPath, tmp_path: Path) -> None:
    path.disturb("udp dport > 0", dropped=0)
    for options in (["--size", "64,512,1400"], ["--size", "1000", "--no-offload"]):
        report, file = run(path, tmp_path, "--udp", *options, "--count", "300", "--rate", "5M")
        (row,) = block_rows(file)
        assert report["blocks_received"] == row["blocks"] == 300


def captured_twice(path: DroppingPath, folder: Path, *options: str) -> tuple[Report, list[list[Row]]]:
    """A test over UDP, and the directions with blocks of the captures at both ends."""
    with (
        receiving(folder, "--once", inside=tuple(path.inside(path.receiver)), port=PORT),
        path.capturing_both(folder) as files,
    ):
        report = send(PORT, "--udp", *options, host=RECEIVER, inside=tuple(path.inside(path.sender, *ON_ONE)))
    return report, [block_rows(file) for file in files]


@contextlib.contextmanager
def with_queue(path: DroppingPath, queue: str) -> Iterator[None]:
    """The sender's interface has a queueing discipline."""
    path.run(path.sender, "tc", "qdisc", "add", "dev", "path", "root", *queue.split())
    try:
        yield
    finally:
        path.run(path.sender, "tc", "qdisc", "delete", "dev", "path", "root")


@pytest.mark.parametrize(
    ("options", "reported", "is_joined"),
    [
        ((), None, True),
        (("--reverse",), None, True),
        (("--device", "path"), None, True),
        (("--offload",), True, True),
        (("--no-offload",), False, False),
    ],
)
def test_an_interface_that_does_not_segment_gets_real_datagrams(
    path: DroppingPath, tmp_path: Path, options: tuple[str, ...], reported: bool | None, is_joined: bool
) -> None:
    path.disturb("udp dport > 0", dropped=0)
    report, both = captured_twice(path, tmp_path, *options, "--size", "1000", "--count", "300")
    assert report["test"]["offload"] is reported
    assert report["sender"]["blocks_offloaded"] == (300 if is_joined else 0)
    assert report["blocks_corrupt"] == report["blocks_lost"] == 0
    for (row,) in both:
        assert row["blocks"] == row["packets"] == report["blocks_received"] == 300


def test_an_interface_that_segments_gets_single_datagrams(path: DroppingPath, tmp_path: Path) -> None:
    """Else captures would show joined datagrams, as with --offload."""
    path.disturb("udp dport > 0", dropped=0)
    path.run(path.sender, *["ethtool", "-K", "path", "tx", "on", "tx-udp-segmentation", "on"])
    try:
        report, both = captured_twice(path, tmp_path, "--size", "1000", "--count", "300")
        joined, (offloaded, _) = captured_twice(path, tmp_path, "--offload", "--size", "1000", "--count", "300")
    finally:
        path.run(path.sender, *["ethtool", "-K", "path", "tx", "off"])
    assert report["sender"]["blocks_offloaded"] == 0
    for (row,) in both:
        assert row["blocks"] == row["packets"] == 300
    assert joined["sender"]["blocks_offloaded"] == 300 > 10 * offloaded[0]["packets"]


@pytest.mark.parametrize(
    ("queue", "is_joined"), [("pfifo_fast", True), ("tbf rate 100mbit burst 3200 latency 2s", False)]
)
def test_a_shaper_gets_single_datagrams(path: DroppingPath, tmp_path: Path, queue: str, is_joined: bool) -> None:
    path.disturb("udp dport > 0", dropped=0)
    with with_queue(path, queue):
        report, _ = run(path, tmp_path, "--udp", "--size", "1000", "--count", "100")
    assert report["sender"]["blocks_offloaded"] == (100 if is_joined else 0)
    assert report["blocks_received"] == 100


@pytest.mark.parametrize(
    ("options", "most"),
    [
        (("--size", "2000"), 0),  # the kernel refuses to segment to more than the MTU; fragments are sent
        (("--size", "200,1000"), 0),
        (("--size", "1000", "--rate", "250pps"), 50),  # few that a delay of the machine made due together
        (("--size", "1000", "--rate", "250pps", "--poisson"), 60),
    ],
)
def test_blocks_that_cannot_be_joined_leave_alone(
    path: DroppingPath, tmp_path: Path, options: tuple[str, ...], most: int
) -> None:
    path.disturb("udp dport > 0", dropped=0)
    report, _ = run(path, tmp_path, "--udp", *options, "--count", "100")
    assert report["sender"]["blocks_offloaded"] <= most, report["sender"]
    assert report["blocks_received"] == 100 and not report["sender"]["send_errors"], report["sender"]


def test_a_burst_is_joined(path: DroppingPath, tmp_path: Path) -> None:
    path.disturb("udp dport > 0", dropped=0)
    options = ("--udp", "--size", "500", "--rate", "1000pps", "--burst", "20", "--count", "100")
    report, file = run(path, tmp_path, *options)
    (row,) = block_rows(file)
    assert report["sender"]["blocks_offloaded"] == report["blocks_received"] == row["blocks"] == row["packets"] == 100


def test_a_block_that_does_not_fit_is_reported(path: DroppingPath, tmp_path: Path) -> None:
    """Don't fragment, and more than the MTU: an error, not silence."""
    path.disturb("udp dport > 0", dropped=0)
    inside, outside = tuple(path.inside(path.receiver)), tuple(path.inside(path.sender))
    with receiving(tmp_path, inside=inside, port=PORT):
        done = send_raw(PORT, "--udp", "--size", "3000", "--df", "do", "--count", "5", host=RECEIVER, inside=outside)
        report = json.loads(done.stdout)
        assert done.returncode == 3 and report["stopped_by"] == "error"
        assert report["sender"]["send_errors"] == {"EMSGSIZE": 1}
        assert "MTU" in report["error"]
        fragmented = send(
            PORT, "--udp", "--size", "3000", "--df", "dont", "--count", "5", host=RECEIVER, inside=outside
        )
        assert fragmented["blocks_received"] == 5


def test_a_device_is_kept_to(path: DroppingPath, tmp_path: Path) -> None:
    path.disturb("udp dport > 0", dropped=0)
    inside, outside = tuple(path.inside(path.receiver)), tuple(path.inside(path.sender))
    with receiving(tmp_path, "--data-ports", "40100-40110", inside=inside, port=PORT):
        report = send(PORT, "--udp", "--device", "path", "--count", "9", "-P", "3", host=RECEIVER, inside=outside)
        # A burst of UDP may lose a datagram on a busy machine.
        assert report["blocks_sent"] == 27 == report["blocks_received"] + report["blocks_lost"], report
        assert report["blocks_received"] > 20, report
        wrong = send_raw(
            PORT, "--udp", "--device", "lo", "--connect-timeout", "0.5", "--count", "9", host=RECEIVER, inside=outside
        )
        assert wrong.returncode == 4


def test_the_receiver_runs_unprivileged(path: DroppingPath, tmp_path: Path) -> None:
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    tmp_path.chmod(0o755)
    able = subprocess.run([*nobody, program(), "--version"], capture_output=True)
    if able.returncode:
        pytest.skip("another user cannot read this folder")
    inside = (*path.inside(path.receiver), *nobody)
    with receiving(tmp_path, inside=inside, port=PORT):
        for protocol in ("--udp", "--tcp"):
            report = send(
                PORT, protocol, "--count", "50", "--rate", "5M", host=RECEIVER, inside=tuple(path.inside(path.sender))
            )
            assert report["blocks_received"] == 50


def quiet_datagrams(path: DroppingPath) -> int:
    """Those of the receiver that came to the router since QUIET."""
    match = re.search(r"packets (\d+)", path.run(path.router, "nft", "list counter inet quiet datagrams"))
    assert match
    return int(match[1])


def test_a_silent_client_is_sent_nothing_after_a_second(path: DroppingPath, tmp_path: Path) -> None:
    """All that the client sends is dropped. The flow to it pauses, and goes on when the client is heard again."""
    path.disturb("udp dport > 0", dropped=0)

    options = ("--reverse", "--udp", "--size", "100", "--rate", "500pps", "--time", "10")
    command = sending(PORT, *options, host=RECEIVER, inside=tuple(path.inside(path.sender)))
    with receiving(tmp_path, inside=tuple(path.inside(path.receiver)), port=PORT) as receiver:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            path.run(path.router, "nft", QUIET)
            wait_until(lambda: quiet_datagrams(path) > 500, "the flow runs")
            path.run(path.router, "nft", "add rule inet quiet pre iifname left drop")
            time.sleep(1)
            after_a_second = quiet_datagrams(path)
            time.sleep(1.5)
            assert quiet_datagrams(path) == after_a_second
            path.run(path.router, "nft", "delete table inet quiet")
            path.run(path.router, "nft", QUIET)
            wait_until(lambda: quiet_datagrams(path) > 100, "the flow goes on")
            report = json.loads(process.communicate(timeout=60)[0])
        finally:
            process.kill()
            process.wait(timeout=60)
            subprocess.run(path.inside(path.router, "nft", "delete table inet quiet"), capture_output=True, timeout=20)
        there = receiver.wait_reports(1)[0]
    assert report["complete"] is True and there["complete"] is True
    paused_ns, moved_ns = report["sender"]["paused_ns"], report["sender"]["moved_ns"]
    assert paused_ns == there["sender"]["paused_ns"] > 1.4e9
    assert moved_ns >= 0.9 * paused_ns and report["sender"]["constant_rate"] is False
    assert report["sender"]["largest_burst"] < 250  # the blocks of the pause were not sent at once


def test_a_batch_that_waits_for_room_ends_with_the_flow(path: DroppingPath, tmp_path: Path) -> None:
    """Of 1 Mbit/s: the socket has room for 5 of the 64 blocks of a batch, which take 0.8 s together."""
    path.disturb("udp dport > 0", dropped=0)
    options = ("--reverse", "--udp", "--buffer", "8k", "--time", "60")
    command = sending(PORT, *options, host=RECEIVER, inside=tuple(path.inside(path.sender)))
    slow = "tc qdisc {} dev path root tbf rate 1mbit burst 2k limit 1m"
    with receiving(tmp_path, inside=tuple(path.inside(path.receiver)), port=PORT):
        path.run(path.receiver, *slow.format("add").split())
        path.run(path.router, "nft", QUIET)
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            for _ in range(2):  # at two places of a batch
                wait_until(lambda: quiet_datagrams(path) > 30, "the flow runs")
                path.run(path.router, "nft", "add rule inet quiet pre iifname left drop")
                time.sleep(1.1)  # 0.9 s, and 0.1 s for what the socket has
                after_a_second = quiet_datagrams(path)
                time.sleep(0.8)
                assert quiet_datagrams(path) == after_a_second
                path.run(path.router, "nft", "delete table inet quiet")
                path.run(path.router, "nft", QUIET)
        finally:
            process.kill()
            process.wait(timeout=60)
            subprocess.run(path.inside(path.router, "nft", "delete table inet quiet"), capture_output=True, timeout=20)
            path.run(path.receiver, *slow.format("del").split())
