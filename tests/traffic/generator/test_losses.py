# SPDX-License-Identifier: Apache-2.0
"""The ledger of losses: the part of each place beside the counter of the place that dropped the blocks."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dropping_path import RECEIVER, DroppingPath
from traffic_ends import Report, receiving, send, sending, table_of, undisturbed

pytestmark = pytest.mark.xdist_group("live")

PORT = 41237
TO_RECEIVER = "ip daddr 10.213.2.1 udp dport > 0"
PARTS = ("sender_host", "path", "receiver_host", "receiver_program", "undetermined")
NARROW = "tbf rate 2mbit burst 5k limit 20k"


def parts(report: Report, name: str = "losses") -> list[int | None]:
    """Of the ledger, which must add up to the blocks that were lost."""
    losses = report[name]
    counts = [losses[part] for part in PARTS]
    assert sum(part or 0 for part in counts) == losses["blocks_lost"]
    return counts


@contextlib.contextmanager
def narrow(path: DroppingPath, name: str, device: str) -> Iterator[None]:
    """A queue that drops before the interface of an end."""
    path.run(name, "tc", "qdisc", "add", "dev", device, "root", *NARROW.split())
    try:
        yield
    finally:
        path.run(name, "tc", "qdisc", "del", "dev", device, "root")


def queue_drops(path: DroppingPath, name: str) -> int:
    match = re.search(r"dropped (\d+)", path.run(name, "tc", "-s", "qdisc", "show", "dev", "path", "root"))
    assert match
    return int(match[1])


def send_over(path: DroppingPath, folder: Path, *options: str, count: int = 1000) -> Report:
    """Blocks at more than twice the rate of the narrow queue."""
    options = ("--udp", "--size", "500", "--rate", "5M", "--count", str(count), *options)
    with receiving(folder, "--once", inside=tuple(path.inside(path.receiver)), port=PORT) as receiver:
        report = send(PORT, *options, host=RECEIVER, inside=tuple(path.inside(path.sender)))
        there = receiver.wait_reports(1)[0]
    assert [there["losses"][part] for part in ("blocks_lost", *PARTS)] == [
        report["losses"][part] for part in ("blocks_lost", *PARTS)
    ]
    return report


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_a_queue_of_the_sender(path: DroppingPath, tmp_path: Path, direction: str) -> None:
    path.disturb("udp dport > 0", dropped=0)
    sender = path.sender if direction == "forward" else path.receiver

    def check() -> None:
        with narrow(path, sender, "path"):
            report = send_over(path, tmp_path, *(["--reverse"] if direction == "reverse" else []))
            dropped = queue_drops(path, sender)
        lost = report["blocks_lost"]
        assert parts(report) == [lost, 0, 0, 0, 0]
        assert 400 < lost <= dropped <= lost + 20  # the control connection has losses, too

    undisturbed(check)


def test_drops_of_joined_datagrams_are_unknown(path: DroppingPath, tmp_path: Path) -> None:
    """A queueing discipline counts a joined datagram once."""
    path.disturb("udp dport > 0", dropped=0)
    with narrow(path, path.sender, "path"):
        report = send_over(path, tmp_path, "--offload", "--burst", "20")
    assert report["sender"]["blocks_offloaded"] > 500 and report["losses"]["sender_queue_drops"] is None
    assert parts(report) == [None, None, 0, 0, report["blocks_lost"]] and report["blocks_lost"] > 100


def test_a_drop_on_the_path(path: DroppingPath, tmp_path: Path) -> None:
    path.disturb(TO_RECEIVER, dropped=100)

    def check() -> None:
        before = path.dropped()
        report = send_over(path, tmp_path)
        lost = path.dropped() - before
        assert lost > 50 and parts(report) == [0, lost, 0, 0, 0]

    undisturbed(check)


def test_both_at_once(path: DroppingPath, tmp_path: Path) -> None:
    path.disturb(TO_RECEIVER, dropped=200)

    def check() -> None:
        before = path.dropped()
        with narrow(path, path.sender, "path"):
            report = send_over(path, tmp_path)
        on_path = path.dropped() - before
        there = parts(report)
        assert there[1] is not None and on_path - 20 <= there[1] <= on_path and on_path > 40
        assert there[0] == report["blocks_lost"] - there[1] > 400 and there[2:] == [0, 0, 0]

    undisturbed(check)


def test_a_receiver_that_was_stopped(path: DroppingPath, tmp_path: Path) -> None:
    """Its socket's buffer is full: the kernel's counter of the namespace is the truth."""
    path.disturb("udp dport > 0", dropped=0)

    def buffer_errors() -> int:
        lines = [line.split() for line in path.run(path.receiver, "cat", "/proc/net/snmp").splitlines()]
        names, values = (line for line in lines if line[0] == "Udp:")
        return int(values[names.index("RcvbufErrors")])

    def check() -> None:
        before = buffer_errors()
        options = ("--udp", "--size", "500", "--rate", "1000pps", "--count", "2000", "--buffer", "20k")
        command = sending(PORT, *options, host=RECEIVER, inside=tuple(path.inside(path.sender)))
        with receiving(tmp_path, inside=tuple(path.inside(path.receiver)), port=PORT) as receiver:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            time.sleep(0.5)
            receiver.process.send_signal(signal.SIGSTOP)
            time.sleep(1)
            receiver.process.send_signal(signal.SIGCONT)
            report = json.loads(process.communicate(timeout=60)[0])
        lost = buffer_errors() - before
        assert lost > 500 and parts(report) == [0, 0, lost, 0, 0]

    undisturbed(check)


def test_a_counter_that_no_end_reports_is_null(tmp_path: Path) -> None:
    """A sender by hand, which reports ten blocks and no counters."""
    with receiving(tmp_path) as receiver, socket.create_connection(("127.0.0.1", receiver.port), timeout=60) as sender:
        plan = "protocol=udp direction=forward streams=1 sizes_text=1000 count=10 idle_ns=200000000"
        sender.sendall(f"wiretale/1 nonce={'ab' * 32}\ntest run=7 {plan}\n".encode())
        sender.sendall(b"start\nsent way=forward stream=0 blocks_sent=10 bytes_sent=10000\nend way=forward\n")
        (report,) = receiver.wait_reports(1)
    assert parts(report) == [None, None, 0, 0, 10]
    assert report["losses"]["sender_queue_drops"] is None


def test_the_ledger_is_one_line_of_the_table(tmp_path: Path) -> None:
    with receiving(tmp_path) as receiver:
        table = table_of(receiver.port, "--udp", "--count", "10", "--rate", "1M")
        over_tcp = send(receiver.port, "--count", "1")
    (line,) = [line for line in table.splitlines() if line.startswith("  lost in")]
    places = ("sender's queues", "path", "receiver's kernel", "receiver's program")
    assert line.split("lost in")[1].strip() == ", ".join(f"{place} 0" for place in places)
    assert over_tcp["losses"] is None
