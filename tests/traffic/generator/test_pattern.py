# SPDX-License-Identifier: Apache-2.0
"""send --pattern: sizes and gaps of a file, in turn or drawn, in both directions, and files that are no pattern."""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import needs
from numbered_payloads import block
from processes import wait_until
from traffic_ends import SECONDS, Receiver, free_port, receiving, send, send_raw, undisturbed

pytestmark = pytest.mark.xdist_group("live")

LINES = ((100, 4_000_000), (1400, 10_000_000), (32, 1_000_000))


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    options = ["--user", "root"] if os.geteuid() == 0 else []  # another user has no real-time priority
    with receiving(tmp_path_factory.mktemp("receiver"), *options) as receiver:
        yield receiver


@pytest.fixture
def pattern(tmp_path: Path) -> Path:
    path = tmp_path / "pattern.txt"
    path.write_text("# sizes and gaps\n" + "".join(f"{size} {gap}\n" for size, gap in LINES))
    return path


@pytest.mark.parametrize("direction", [(), ("--reverse",)])
def test_lines_are_sent_in_turn(receiver: Receiver, pattern: Path, direction: tuple[str, ...]) -> None:
    """Of 31 blocks, the first line has 11; the gaps before the last one take their sum."""
    span_s = sum(LINES[n % 3][1] for n in range(30)) / 1e9

    def check() -> None:
        report = send(receiver.port, "--udp", "--pattern", str(pattern), "--count", "31", *direction)
        assert (report["blocks_sent"], report["blocks_received"], report["blocks_corrupt"]) == (31, 31, 0)
        assert report["bytes_sent"] == report["bytes_received"] == sum(LINES[n % 3][0] for n in range(31))
        assert report["test"]["pacing"] == "pattern"
        assert span_s - 0.001 < report["sender"]["elapsed_s"] < span_s + 0.05
        assert report["sender"]["largest_burst"] >= 1

    undisturbed(check)


def test_without_an_amount_each_line_is_sent_once(receiver: Receiver, pattern: Path) -> None:
    report = send(receiver.port, "--udp", "--pattern", str(pattern))
    assert (report["blocks_received"], report["bytes_received"]) == (3, 1532)


def test_a_pattern_of_many_lines_goes_to_a_receiver_that_sends(receiver: Receiver, tmp_path: Path) -> None:
    """65,536 lines, the most that a pattern has; of each, the size is its own."""
    path = tmp_path / "long.txt"
    sizes = [32 + n % 1400 for n in range(65_536)]
    path.write_text("".join(f"{size} 1000\n" for size in sizes))
    report = send(receiver.port, "--udp", "--pattern", str(path), "--reverse", "--count", "2000")
    assert report["bytes_sent"] == sum(sizes[:2000])
    assert report["blocks_corrupt"] == 0


def test_drawn_lines_follow_the_run(receiver: Receiver, pattern: Path) -> None:
    """The same run draws the same lines, another one does not; each line is drawn about equally often."""
    options = ("--udp", "--pattern", str(pattern), "--draw", "--count", "200", "--run")
    first, again, other = (send(receiver.port, *options, run)["bytes_sent"] for run in ("5", "5", "6"))
    assert first == again != other
    assert 0.7 < first / (200 * 1532 / 3) < 1.3


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("64 5\n31 5\n", 'line 2, "31 5": expected a size of 32 to 65527 bytes first'),
        ("64\n", "expected a gap"),
        ("64 -1\n", "expected a gap"),
        ("64 5 5\n", "expected SIZE and GAP"),
        ("", "expected at least one line"),
        ("9" * 500, "expected at most 98 characters"),
        pytest.param("64 5\n" * 65_537, "line 65537", id="too many lines"),  # an id of its text is too long an argument
        ("65520 5\n", "at most 65507 bytes"),
        ("\x1b[2J 5\n", 'line 1, "": expected a size'),
    ],
)
def test_a_file_that_is_no_pattern_is_one_line(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "wrong.txt"
    path.write_text(text)
    done = send_raw(free_port(), "--udp", "--pattern", str(path))
    assert done.returncode in (2, 4)
    assert says in done.stderr.decode() and done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--pattern", "p"), "expected --udp"),
        (("--udp", "--draw"), "expected a --pattern"),
        (("--pattern", "p", "--udp", "--turns", "t"), "no --turns"),
        (("--turns", "t", "--udp"), "expected no --udp"),
        (("--turns", "t", "--size", "64"), "expected no --size"),
        (("--udp", "--pattern", "p", "--rate", "1M"), "expected no --size, --rate"),
        (("--udp", "--pattern", "p", "--size", "64"), "expected no --size, --rate"),
        (("--udp", "--pattern", "p", "--poisson"), "expected a --rate"),
    ],
)
def test_options_that_contradict_a_pattern(options: tuple[str, ...], says: str) -> None:
    done = send_raw(free_port(), *options)
    assert done.returncode == 2 and says in done.stderr.decode()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--udp", "--pattern", "LINES", "--both"), "one direction"),
        (("--udp", "--pattern", "LINES", "--streams", "2"), "one stream"),
        (("--turns", "LINES", "--reverse"), "turns go forward"),
        (("--turns", "LINES", "--streams", "2"), "one stream"),
    ],
)
def test_lines_go_in_one_stream_and_direction(tmp_path: Path, options: tuple[str, ...], says: str) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("64 5 64 5\n" if "--turns" in options else "64 5\n")
    done = send_raw(free_port(), *(str(path) if option == "LINES" else option for option in options))
    assert done.returncode == 2 and says in done.stderr.decode() and done.stderr.count(b"\n") == 1


def test_a_receiver_sends_a_pattern_without_gaps(receiver: Receiver, tmp_path: Path) -> None:
    """Its sizes are those of the lines, although it has no rate."""
    path = tmp_path / "fast.txt"
    path.write_text("100 0\n1000 0\n500 0\n")
    report = send(receiver.port, "--udp", "--pattern", str(path), "--reverse", "--count", "30")
    assert report["bytes_received"] == 16_000 and report["test"]["pacing"] == "none"


def test_a_receiver_with_a_rate_limit_refuses_a_faster_pattern(tmp_path: Path, pattern: Path) -> None:
    """3 blocks in 15 ms, of at most 1400 bytes: 2.24 Mbit/s at most."""
    options = ("--udp", "--pattern", str(pattern), "--reverse", "--count", "3")
    with receiving(tmp_path, "--max-rate", "2M") as receiver:
        done = send_raw(receiver.port, *options)
        assert done.returncode == 4 and b"--max-rate" in done.stderr
    with receiving(tmp_path, "--max-rate", "3M") as receiver:
        assert send(receiver.port, *options)["blocks_received"] == 3


# --- turns


@pytest.mark.parametrize(("amount", "least"), [(("--time", "1"), 1), (("--count", "1"), 0), (("--bytes", "100"), 0)])
def test_the_last_pause_ends_with_the_amount(
    receiver: Receiver, tmp_path: Path, amount: tuple[str, str], least: float
) -> None:
    """A pause of a minute after the first turn."""
    path = tmp_path / "turns.txt"
    path.write_text("200 60000000000 4096 0\n")
    begin = time.monotonic()
    report = send(receiver.port, "--turns", str(path), *amount)
    assert report["sender"]["responses"] == 1 and least <= time.monotonic() - begin < 40


@needs.marked(needs.root())
def test_a_peer_without_pauses_ends_the_priority(receiver: Receiver) -> None:
    """Its lines have pauses of a second, which it does not keep: the receiver's thread must not keep others from a CPU."""

    def has_priority() -> bool:
        tasks = Path(f"/proc/{receiver.process.pid}/task").iterdir()
        return os.SCHED_FIFO in {os.sched_getscheduler(int(task.name)) for task in tasks}

    def flood() -> None:
        request, number = bytearray(block(0, 131072, run=7, stream=0)), 0
        while not is_over.is_set():
            number += 1
            struct.pack_into(">Q", request, 16, number)
            data.sendall(request)

    def discard() -> None:
        while data.recv(1 << 16):
            pass

    is_over = threading.Event()
    plan = "run=7 streams=1 sizes_text=32,131072 time_ns=60000000000 line_count=1 turns=1 unchecked=1"
    with socket.create_connection(("127.0.0.1", receiver.port), timeout=SECONDS) as control:
        control.sendall(
            f"wiretale/1 nonce={'0' * 64}\ntest {plan} longest_gap_ns=1000000000 idle_ns=1000000000\n".encode()
        )
        assert any(line == "ready\n" for line in control.makefile())
        control.sendall(b"lines list=131072:1000000000:32:0\nstart\n")
        with socket.create_connection(("127.0.0.1", receiver.port), timeout=SECONDS) as data:
            data.sendall(block(0, 131072, run=7, stream=0))
            assert data.recv(32) and has_priority()
            threads = [threading.Thread(target=flood), threading.Thread(target=discard)]
            for thread in threads:
                thread.start()
            try:
                wait_until(lambda: not has_priority(), "the thread has the usual priority")
            finally:
                is_over.set()
                threads[0].join()
                data.shutdown(socket.SHUT_WR)
                threads[1].join()
