# SPDX-License-Identifier: Apache-2.0
"""The receiver of wiretale-traffic among strangers: it refuses, forgets, goes on, and never hangs."""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from numbered_payloads import TILED, block
from processes import full_pipe
from traffic_ends import free_port, program, receiving, send, send_raw, sending_early
from wiretale.traffic.program import TRUSTED

pytestmark = pytest.mark.xdist_group("traffic-ends")

NONCE = "ab" * 32
LONG = ("--time", "600", "--rate", "500pps", "--size", "100")
TEST = "test run=7 protocol=tcp direction=forward streams=1 sizes_text=1000 count=10 idle_ns=1000000000"


@pytest.fixture
def many_files() -> Iterator[None]:
    """Room for 1,000 connections in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, hard), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def talk(port: int, *lines: str) -> list[str]:
    """The receiver's answers until it closes the connection."""
    with connect(port) as control:
        for line in lines:
            control.sendall(line.encode() + b"\n")
        control.shutdown(socket.SHUT_WR)
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := control.recv(65536):
                answer += piece
    return answer.decode().splitlines()


def until_ready(control: socket.socket) -> bytes:
    """The receiver's answers to the plan of a test."""
    replies = b""
    while b"ready" not in replies:
        replies += control.recv(4096)
    return replies


def test_garbage_is_turned_away_and_forgotten(tmp_path: Path) -> None:
    chance = random.Random(5)
    lines = [f"wiretale/1 nonce={NONCE}", TEST, "start", "ready", "sent way=forward stream=0 blocks_sent=3", "end", ""]
    with receiving(tmp_path) as receiver:
        for _ in range(150):
            with connect(receiver.port) as stranger, contextlib.suppress(OSError):
                stranger.sendall(chance.randbytes(chance.choice([1, 31, 32, 33, 5000])))
        for _ in range(150):  # and nearly right ones
            with connect(receiver.port) as stranger, contextlib.suppress(OSError):
                text = bytearray("\n".join(lines[: chance.randrange(1, 8)]).encode() + b"\n")
                for _ in range(chance.randrange(4)):
                    text[chance.randrange(len(text))] = chance.randrange(256)
                stranger.sendall(text)
        assert send(receiver.port, "--count", "10", "--wait", "20")["blocks_received"] == 10


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("streams=1", "streams=0"), "no streams"),
        (("streams=1", "streams=1024"), "--max-streams"),
        (("streams=1", "streams=99999"), "bounds"),
        (("count=10", "count=0"), "no amount"),
        (("count=10", "count=99999999999999"), "--max-bytes"),
        (("count=10", "time_ns=9000000000000"), "--max-time"),
        (("sizes_text=1000", "sizes_text=31"), "32 bytes"),
        (("sizes_text=1000", "sizes_text=1-9:0"), "sizes"),
        (("tcp direction=forward streams=1 sizes_text=1000", "udp streams=1 sizes_text=70000"), "65507"),
        (("run=7", "run=-7"), "bounds"),
        (("run=7", "walk=7"), "unknown field"),
        (("idle_ns", "content=1 file_name=..%2Fx idle_ns"), "name"),
        (("idle_ns", "content=1 file_name=.ssh idle_ns"), "name"),
        (("count=10", "count=10 pacing=constant rate_bps=50"), "--min-rate"),
        (("count=10", "count=10 start_offset_ns=100000000000"), "--min-rate"),
    ],
)
def test_a_test_out_of_bounds_is_refused_with_the_reason(tmp_path: Path, change: tuple[str, str], says: str) -> None:
    with receiving(tmp_path) as receiver:
        *_, last = talk(receiver.port, f"wiretale/1 nonce={NONCE}", TEST.replace(*change))
    assert last.startswith("refused ") and says in last.replace("%20", " ")


def test_a_receiver_of_its_own_sender_waits_for_it(tmp_path: Path) -> None:
    with receiving(tmp_path, *TRUSTED, "--parallel", "2", "--per-address", "2") as receiver:
        for plan in ("pacing=constant rate_bps=50", "start_offset_ns=100000000000"):
            answer = talk(receiver.port, f"wiretale/1 nonce={NONCE}", f"{TEST} {plan}")
            assert "ready" in answer, answer


def test_a_file_does_not_leave_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    with receiving(tmp_path, "--output-dir", str(folder)) as receiver:
        names = ("..%2Fout", "%2Ftmp%2Fout", ".hidden", "a%00b", "a%0Ab", "", "-rf", "caf%E9", "a%E2%80%AEtxt.exe")
        for name in names:
            answer = talk(receiver.port, f"wiretale/1 nonce={NONCE}", f"{TEST} content=1 file_name={name}")
            assert answer[-1].startswith("refused"), name
    assert not list(folder.iterdir())


def test_a_file_that_was_cut_short_is_not_kept(tmp_path: Path) -> None:
    folder, source = tmp_path / "in", tmp_path / "half.bin"
    folder.mkdir()
    source.write_bytes(bytes(1_000_000))
    options = ("--file", str(source), "--size", "1000", "--rate", "1M")
    with receiving(tmp_path, "--output-dir", str(folder)) as receiver:
        with sending_early(tmp_path, receiver.port, *options) as sender:
            sender.wait_blocks(10)
            sender.end(signal.SIGKILL)
        report = receiver.wait_reports(1)[0]
    assert report["complete"] is False and report["file"]["written"] is False
    assert not list(folder.iterdir())


def test_a_second_sender_is_refused_or_waits(tmp_path: Path) -> None:
    options = ("--time", "600", "--rate", "1M", "--size", "1000")
    with receiving(tmp_path) as receiver, sending_early(tmp_path, receiver.port, *options) as first:
        first.wait_blocks(1)
        refused = send_raw(receiver.port, "--count", "1")
        assert refused.returncode == 4 and b"another test is running" in refused.stderr
        with sending_early(tmp_path, receiver.port, "--count", "1", "--wait", "60") as second:
            time.sleep(0.3)
            assert second.process.poll() is None
            assert first.end(signal.SIGINT) == 130
            assert second.wait() == 0 and second.report()["blocks_received"] == 1


def test_parallel_tests_run_at_the_same_time(tmp_path: Path) -> None:
    with receiving(tmp_path, "--parallel", "3", "--per-address", "3") as receiver:
        with contextlib.ExitStack() as stack:
            plan = ("--time", "600", "--rate", "1M", "--size", "500")
            senders = [
                stack.enter_context(sending_early(tmp_path, receiver.port, *more, *plan))
                for more in (["--udp"], [], ["--reverse"])
            ]
            for sender in senders:
                sender.wait_blocks(50)
            assert [sender.process.poll() for sender in senders] == [None] * 3
            assert [sender.end(signal.SIGINT) for sender in senders] == [130] * 3
        reports = receiver.wait_reports(3)
    assert all(report["blocks_received"] >= 50 for report in reports)


def test_the_sender_may_start_first(tmp_path: Path) -> None:
    port = free_port()
    with sending_early(tmp_path, port, "--count", "5", "--wait", "60") as sender:
        time.sleep(0.4)
        assert sender.process.poll() is None
        with receiving(tmp_path, port=port):
            assert sender.wait() == 0


@pytest.mark.parametrize("protocol", ["--tcp", "--udp"])
def test_a_sender_that_vanishes_leaves_its_part(tmp_path: Path, protocol: str) -> None:
    with receiving(tmp_path) as receiver:
        with sending_early(tmp_path, receiver.port, protocol, *LONG) as sender:
            sender.wait_blocks(60)
            sender.end(signal.SIGKILL)
        report = receiver.wait_reports(1)[0]
        assert (report["complete"], report["stopped_by"]) == (False, "peer gone")
        assert report["blocks_received"] > 50 and report["blocks_lost"] is None and report["sender"] is None
        assert send(receiver.port, "--count", "3")["blocks_received"] == 3


def test_a_receiver_that_vanishes_ends_the_sender(tmp_path: Path) -> None:
    with receiving(tmp_path) as receiver, sending_early(tmp_path, receiver.port, "--udp", *LONG) as sender:
        sender.wait_blocks(60)
        receiver.process.kill()
        assert sender.wait() == 3
        report = sender.report()
    assert (report["complete"], report["stopped_by"], report["receiver"]) == (False, "peer gone", None)
    assert report["blocks_sent"] > 50


@pytest.mark.parametrize("protocol", ["--tcp", "--udp"])
@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGHUP])
def test_an_interrupted_sender_reports_its_part(tmp_path: Path, protocol: str, which: signal.Signals) -> None:
    with receiving(tmp_path) as receiver, sending_early(tmp_path, receiver.port, protocol, *LONG) as sender:
        sender.wait_blocks(60)
        assert sender.end(which) == 130
        report, there = sender.report(), receiver.wait_reports(1)[0]
    for log in (report, there):
        assert (log["complete"], log["stopped_by"], log["stopped_at"]) == (False, "signal", "sender")
        assert log["blocks_sent"] == log["blocks_received"] > 50 and log["blocks_lost"] == 0


@pytest.mark.parametrize(("which", "code"), [(signal.SIGINT, 130), (signal.SIGHUP, 3)])
def test_a_stopped_receiver_reports_its_part(tmp_path: Path, which: signal.Signals, code: int) -> None:
    with receiving(tmp_path) as receiver, sending_early(tmp_path, receiver.port, "--udp", *LONG) as sender:
        sender.wait_blocks(60)
        assert receiver.end(which) == code
        assert sender.wait() == 3
        report, there = sender.report(), receiver.wait_reports(1)[0]
    for log in (report, there):
        assert (log["stopped_by"], log["stopped_at"]) == ("signal", "receiver")
        assert log["blocks_sent"] == log["blocks_received"] > 50


def test_stopping_an_idle_receiver_is_in_order(tmp_path: Path) -> None:
    with receiving(tmp_path) as receiver:
        assert receiver.end() == 0


def test_one_wish_to_stop_that_comes_as_two_signals_is_one(tmp_path: Path) -> None:
    """As timeout(1) sends them: to the process, and to its group."""
    with receiving(tmp_path) as receiver, sending_early(tmp_path, receiver.port, "--udp", *LONG) as sender:
        sender.wait_blocks(60)
        for _ in range(3):
            sender.process.send_signal(signal.SIGTERM)
            time.sleep(0.003)
        assert sender.wait() == 143
        report = sender.report()
    assert report["stopped_by"] == "signal" and report["blocks_received"] > 50


def test_hanging_up_is_ignored_where_nohup_says_so(tmp_path: Path) -> None:
    with receiving(tmp_path, inside=("nohup",)) as receiver:
        receiver.process.send_signal(signal.SIGHUP)
        assert send(receiver.port, "--count", "10")["blocks_received"] == 10


@pytest.mark.parametrize("style", [[], ["--json"]])
def test_a_report_that_cannot_be_written_is_an_error(tmp_path: Path, style: list[str]) -> None:
    with receiving(tmp_path) as receiver, Path("/dev/full").open("w") as full:
        command = [program(), "send", "127.0.0.1", "--port", str(receiver.port), "--count", "10", *style]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 4
    assert done.stderr == "wiretale-traffic send: cannot write to standard output: No space left on device\n"


def test_closed_standard_streams_become_no_sockets(tmp_path: Path) -> None:
    """Lines of intervals would go down the control connection."""
    with receiving(tmp_path) as receiver:
        text = 'exec "$0" send 127.0.0.1 --port "$1" --udp --rate 200pps --size 100 --count 100 -i 20ms <&- >&- 2>&-'
        assert subprocess.run(["sh", "-c", text, program(), str(receiver.port)], timeout=60).returncode == 4
        report = receiver.wait_reports(1)[0]
    assert (report["complete"], report["blocks_received"]) == (True, 100)


def test_a_rate_over_no_time_is_unknown_in_the_table(tmp_path: Path) -> None:
    with receiving(tmp_path) as receiver:
        command = [program(), "send", "127.0.0.1", "--port", str(receiver.port), "--udp", "--count", "1"]
        table = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    (line,) = [line for line in table.splitlines() if line.startswith("  received")]
    assert "rate unknown" in line and "Mbit/s" not in line


def test_a_missing_output_folder_is_reported_at_the_start(tmp_path: Path) -> None:
    command = [program(), "receive", "--port", "1", "--output-dir", str(tmp_path / "none")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 4
    assert done.stderr == f"wiretale-traffic receive: --output-dir {tmp_path / 'none'}: No such file or directory\n"


def test_once_and_tests_end_the_receiver(tmp_path: Path) -> None:
    with receiving(tmp_path, "--once") as receiver:
        send(receiver.port, "--count", "1")
        assert receiver.process.wait(timeout=60) == 0
    with receiving(tmp_path, "--tests", "2") as receiver:
        send(receiver.port, "--count", "1")
        assert receiver.process.poll() is None
        send(receiver.port, "--count", "1", "--wait", "5")
        assert receiver.process.wait(timeout=60) == 0


@pytest.mark.parametrize("size", [64, 8192])
def test_a_fast_stream_does_not_wake_the_receiver_for_each_datagram(tmp_path: Path, size: int) -> None:
    with receiving(tmp_path, "--once") as receiver:
        report = send(receiver.port, "--udp", "--size", str(size), "--rate", "40kpps", "--count", "40000")
        _, status, used = os.wait4(receiver.process.pid, 0)
        receiver.process.returncode = os.waitstatus_to_exitcode(status)
    assert receiver.process.returncode == 0
    assert report["receiver"]["blocks_received"] > 20_000
    assert used.ru_nvcsw < report["receiver"]["blocks_received"] / 2


def test_silence_ends_a_test_with_partial_results(tmp_path: Path) -> None:
    """A sender reports its blocks, and none of them arrives."""
    with receiving(tmp_path) as receiver, connect(receiver.port) as sender:
        plan = TEST.replace("tcp", "udp").replace("idle_ns=1000000000", "idle_ns=200000000")
        sender.sendall(f"wiretale/1 nonce={NONCE}\n{plan}\n".encode())
        sender.sendall(b"start\nsent way=forward stream=0 blocks_sent=10 bytes_sent=10000\nend way=forward\n")
        began = time.monotonic()
        report = receiver.wait_reports(1)[0]
    assert time.monotonic() - began < 5
    assert (report["blocks_sent"], report["blocks_received"], report["blocks_lost"]) == (10, 0, 10)


def test_a_test_that_is_not_started_gives_its_slot_back(tmp_path: Path) -> None:
    with receiving(tmp_path) as receiver, connect(receiver.port) as idler:
        idler.sendall(f"wiretale/1 nonce={NONCE}\n{TEST}\n".encode())
        time.sleep(0.2)
        assert send_raw(receiver.port, "--count", "1").returncode == 4
        assert send(receiver.port, "--count", "1", "--wait", "20")["blocks_received"] == 1


def test_limits_hold_while_a_test_runs(tmp_path: Path) -> None:
    with receiving(tmp_path, "--max-bytes", "50k") as receiver:
        done = send_raw(receiver.port, "--file", "-", "--size", "1000", stdin=bytes(2_000_000))
        report = json.loads(done.stdout)
        assert done.returncode == 3 and report["stopped_by"] == "limit"
        refused = send_raw(receiver.port, "--bytes", "60k", "--size", "1000")
        assert refused.returncode == 4 and b"50000 bytes" in refused.stderr


def test_the_key_keeps_strangers_out(tmp_path: Path) -> None:
    right, wrong, short = tmp_path / "right", tmp_path / "wrong", tmp_path / "short"
    right.write_bytes(os.urandom(32))
    wrong.write_bytes(os.urandom(32))
    short.write_bytes(b"secret")
    for key in (right, wrong, short):
        key.chmod(0o600)
    with receiving(tmp_path, "--key", str(right)) as receiver:
        assert "anyone" not in receiver.errors.read_text()
        assert send(receiver.port, "--key", str(right), "--count", "3")["blocks_received"] == 3
        for options, says in (
            (["--key", str(wrong)], b"wrong key"),
            ([], b"expected --key FILE"),
            (["--key", str(short)], b"32"),
            (["--key", str(tmp_path / "none")], b"No such file"),
        ):
            done = send_raw(receiver.port, "--count", "1", *options)
            assert done.returncode == 4 and says in done.stderr, done.stderr
        assert talk(receiver.port, f"wiretale/1 nonce={NONCE}", TEST)[-1].startswith("refused")
        right.chmod(0o644)
        assert b"chmod 600" in send_raw(receiver.port, "--key", str(right), "--count", "1").stderr
    with receiving(tmp_path) as receiver:
        assert "anyone" in receiver.errors.read_text()
        right.chmod(0o600)
        assert b"has no key" in send_raw(receiver.port, "--key", str(right), "--count", "1").stderr


def test_a_proof_is_good_for_one_challenge_only(tmp_path: Path) -> None:
    """The receiver's own words do not authenticate a sender."""
    key = tmp_path / "key"
    key.write_bytes(os.urandom(40))
    key.chmod(0o600)
    with receiving(tmp_path, "--key", str(key)) as receiver, connect(receiver.port) as stranger:
        stranger.sendall(f"wiretale/1 nonce={NONCE}\n".encode())
        hello = stranger.recv(4096).decode().split()
        nonce = next(word[6:] for word in hello if word.startswith("nonce="))
        assert len(nonce) == 64 and nonce != NONCE
        stranger.sendall(f"proof proof={nonce}\n{TEST}\n".encode())
        assert stranger.recv(4096).startswith(b"refused")


def test_a_thousand_idle_connections_hold_nothing(tmp_path: Path, many_files: None) -> None:
    with receiving(tmp_path) as receiver, contextlib.ExitStack() as stack:
        strangers = [stack.enter_context(connect(receiver.port)) for _ in range(1000)]
        for number, stranger in enumerate(strangers):
            if number % 2:
                stranger.sendall(b"wiret")  # and no more
        assert send(receiver.port, "--count", "10", "--streams", "4", "--wait", "10")["blocks_received"] == 40
        strangers[0].settimeout(60)
        assert strangers[0].recv(10) == b""  # its time is over
        for stranger in strangers:
            stranger.close()
        assert send(receiver.port, "--count", "10")["blocks_received"] == 10


def test_a_data_connection_without_a_session_is_closed(tmp_path: Path) -> None:
    with receiving(tmp_path) as receiver:
        for head in (b"WTB1" + bytes(28), b"data run=5 stream=0\n", b"data run=x\n"):
            with connect(receiver.port) as stranger:
                stranger.sendall(head)
                with contextlib.suppress(ConnectionResetError):
                    assert stranger.recv(10) == b""
        assert send(receiver.port, "--count", "3")["blocks_received"] == 3


@pytest.mark.parametrize("tiled", [False, True])
def test_damaged_blocks_are_counted_and_the_next_ones_found(tmp_path: Path, tiled: bool) -> None:
    """By hand, over TCP: of 10 blocks one with a wrong byte, one with a broken header."""
    with receiving(tmp_path) as receiver, connect(receiver.port) as control:
        control.sendall(f"wiretale/1 nonce={NONCE}\n{TEST.replace('1000 ', '40 ')}\n".encode())
        until_ready(control)
        control.sendall(b"start\n")
        blocks = [bytearray(block(number, 40, stream=0, flags=TILED * tiled)) for number in range(10)]
        blocks[3][39] ^= 1
        blocks[6][0] ^= 1
        with connect(receiver.port) as data:
            data.sendall(b"".join(blocks))
        control.sendall(b"sent way=forward stream=0 blocks_sent=10 bytes_sent=400\nend way=forward\n")
        report = receiver.wait_reports(1)[0]
    assert (report["blocks_received"], report["blocks_corrupt"], report["blocks_lost"]) == (10, 2, 0)


def test_udp_counts_duplicate_late_and_foreign_blocks(tmp_path: Path) -> None:
    with receiving(tmp_path) as receiver, connect(receiver.port) as control:
        plan = TEST.replace("tcp", "udp").replace("1000 ", "40 ").replace("idle_ns=1000000000", "idle_ns=300000000")
        control.sendall(f"wiretale/1 nonce={NONCE}\n{plan}\n".encode())
        replies = until_ready(control)
        port = int(replies.split(b"port=")[1].split()[0])
        control.sendall(b"start\n")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as data:
            data.connect(("127.0.0.1", port))
            for number in (0, 1, 4, 2, 4, 5, 5, 7):
                data.send(block(number, 40, stream=0))
            broken = bytearray(block(8, 40, stream=0))
            broken[35] ^= 0x80
            data.send(broken)
            for stranger in (
                block(3, 40, run=8, stream=0),
                block(3, 40),
                b"",
                b"WTB1",
                block(99, 40, stream=0),
                bytes(3000),
            ):
                data.send(stranger)
            time.sleep(0.2)
        control.sendall(b"sent way=forward stream=0 blocks_sent=10 bytes_sent=400\nend way=forward\n")
        report = receiver.wait_reports(1)[0]
    counts = {name: report["receiver"][f"blocks_{name}"] for name in ("received", "lost", "out_of_order", "duplicate")}
    assert counts == {"received": 7, "lost": 3, "out_of_order": 1, "duplicate": 2}
    assert (report["blocks_corrupt"], report["receiver"]["foreign_datagrams"]) == (1, 6)


MOST = 2**63 - 1


def test_a_peer_with_wrong_figures_is_reported(tmp_path: Path) -> None:
    """Each figure of each stream is the largest that the protocol lets it say: the sums stay there."""
    plan = "test run=9 protocol=udp direction=both streams=2 sizes_text=100 count=1 idle_ns=50000000"
    names = ("blocks_sent", "bytes_sent", "first_ns", "elapsed_ns", "cpu_user_ns", "cpu_system_ns")
    sent = " ".join(f"{name}={MOST}" for name in names) + f" last_ns=1 errors=EPERM:{MOST}"
    received = (
        f"blocks_received={MOST} bytes_received={MOST} out_of_order={MOST} duplicate={MOST} jitter_ns_plus_1={MOST}"
    )
    with (
        receiving(tmp_path, "--once") as receiver,
        connect(receiver.port) as peer,
        socket.socket(type=socket.SOCK_DGRAM) as data,
    ):
        data.bind(("127.0.0.1", 0))
        answers = peer.makefile()

        def say(*lines: str) -> None:
            peer.sendall("".join(f"{line}\n" for line in lines).encode())

        say(f"wiretale/1 nonce={NONCE}", plan)
        while not next(answers).startswith("ready"):
            pass
        for stream in range(2):
            say(f"port way=reverse stream={stream} port={data.getsockname()[1]}")
        say("start")
        for stream in range(2):
            say(f"sent way=forward stream={stream} {sent}", f"received way=reverse stream={stream} {received}")
        say("end way=forward", "done way=reverse")
        while not next(answers).startswith("done"):
            pass
        report = receiver.wait_reports(1)[0]
        assert receiver.process.wait(timeout=60) == 0
    assert (report["blocks_sent"], report["bytes_sent"], report["bytes_received"]) == (MOST, MOST, MOST)
    assert (report["blocks_lost"], report["blocks_out_of_order"], report["blocks_duplicate"]) == (MOST, MOST, MOST)
    assert (report["sender"]["send_errors"], report["sender"]["elapsed_s"]) == ({"EPERM": MOST}, 0)
    assert report["reverse_receiver"]["blocks_received"] == MOST


def test_a_report_that_is_not_read_yet_holds_up_no_sender(tmp_path: Path) -> None:
    """Of tests one after the other each begins as soon as its sender was answered, even if the reports are not read."""
    reader, writer = full_pipe()
    port, errors = free_port(), tmp_path / "errors"
    command = [program(), "receive", "--port", str(port), "--json"]
    with errors.open("w") as log, subprocess.Popen(command, stdout=writer, stderr=log) as receiver:
        os.close(writer)
        try:
            assert send(port, "--wait", "20", "--count", "3")["blocks_received"] == 3  # until it listens
            assert send(port, "--count", "3")["blocks_received"] == 3
            refused = send_raw(port, "--count", "3")  # both slots have a report to print
            assert refused.returncode == 4 and b"another test is running" in refused.stderr
        finally:
            os.close(reader)
            receiver.kill()


def test_only_allowed_networks_may_run_tests(tmp_path: Path) -> None:
    with receiving(tmp_path, "--allow", "127.0.0.2", "--allow", "::/64") as receiver:
        done = send_raw(receiver.port, "--count", "5", "--bind", "127.0.0.1", "--wait", "5")
        assert done.returncode == 4 and b"the receiver allows no tests from this address" in done.stderr
        assert send(receiver.port, "--count", "5", "--bind", "127.0.0.2")["blocks_received"] == 5
        assert send(receiver.port, "--count", "5", "--udp", host="::1")["blocks_received"] == 5
        assert "anyone who reaches" not in receiver.errors.read_text()


@pytest.mark.parametrize("network", ["10.0.0.1/8", "example.org", "10.0.0.0/33"])
def test_a_network_that_is_none_is_refused(network: str) -> None:
    done = subprocess.run([program(), "receive", "--allow", network], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and network in done.stderr and "192.0.2.0/24" in done.stderr


def test_max_rate_bounds_plans(tmp_path: Path) -> None:
    """Also of several streams, in blocks per second, and in the direction in which the receiver sends."""
    with receiving(tmp_path, "--max-rate", "8M") as receiver:
        for options in (
            (),
            ("--rate", "9M"),
            ("--rate", "5M", "--streams", "2"),
            ("--udp", "--size", "1001", "--rate", "1000pps"),
            ("--rate", "9M", "--reverse"),
        ):
            done = send_raw(receiver.port, "--time", "1", *options)
            assert done.returncode == 4 and b"expected a --rate of at most" in done.stderr
        for options in (("--rate", "8M"), ("--rate", "4M", "--streams", "2", "--reverse"), ("--rate", "8M", "--both")):
            report = send(receiver.port, "--time", "2.5", "--udp", *options)
            assert report["complete"], report
        report = send(
            receiver.port, "--udp", "--rate", "1000pps", "--size", "1000", "--burst", "900", "--count", "2700"
        )
        assert report["complete"]


def test_a_sender_that_exceeds_its_rate_is_stopped(tmp_path: Path) -> None:
    """The plan on the wire says 1 Mbit/s; the blocks come as fast as they go. Its datagrams are made here."""
    with (
        receiving(tmp_path, "--max-rate", "1M") as receiver,
        socket.create_connection(("127.0.0.1", receiver.port)) as control,
    ):
        control.settimeout(20)
        lines = control.makefile("rw", newline="\n")
        plan = "run=7 protocol=udp streams=1 sizes_text=1000 count=5000 pacing=constant rate_bps=1000000 idle_ns=1000000000"
        lines.write(f"wiretale/1 nonce={'0' * 64}\ntest {plan}\n")
        lines.flush()
        replies = [lines.readline() for _ in range(3)]
        assert replies[2] == "ready\n", replies
        port = int(replies[1].rpartition("port=")[2])
        lines.write("start\n")
        lines.flush()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
            datagrams.connect(("127.0.0.1", port))
            for number in range(2000):
                datagrams.send(block(number, 1000, run=7, stream=0, flags=TILED))
                time.sleep(0.0005)
        stopped = next(line for line in lines if line.startswith("stop"))
        assert "reason=limit" in stopped
