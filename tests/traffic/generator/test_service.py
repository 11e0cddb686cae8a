# SPDX-License-Identifier: Apache-2.0
"""The receiver of wiretale-traffic as a service for others: flows to clients that are gone, quotas, slots, rights, files."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import signal
import socket
import subprocess
import time
from pathlib import Path
from urllib.parse import unquote

import pytest

import needs
from checkout import ROOT
from numbered_payloads import block
from processes import output, wait_until
from traffic_ends import SECONDS, Receiver, program, receiving, send, send_raw, sending, sending_early

pytestmark = pytest.mark.xdist_group("traffic-ends")

LONG = ("--time", "600", "--rate", "500pps", "--size", "100")


def test_the_flow_to_a_stopped_client_pauses(tmp_path: Path) -> None:
    """Its host still takes the datagrams, but nothing shows that they are wanted."""

    def sent(receiver: Receiver) -> int:
        lines = [json.loads(line) for line in receiver.out.read_text().splitlines()]
        return sum(line["blocks_sent"] for line in lines if line["schema"] == "wiretale.interval/1")

    with (
        receiving(tmp_path, "--interval", "50ms") as server,
        sending_early(tmp_path, server.port, "--udp", "--reverse", *LONG) as client,
    ):
        client.wait_blocks(100)
        client.process.send_signal(signal.SIGSTOP)
        time.sleep(2.5)  # the receiver prints the last of its lines in it
        before = sent(server)
        time.sleep(1.5)
        assert before == sent(server) > 100
        client.process.send_signal(signal.SIGCONT)
        wait_until(lambda: sent(server) > before + 100, "the flow goes on")
        assert client.end(signal.SIGINT) == 130
        (report,) = server.wait_reports(1)
    assert report["sender"]["paused_ns"] > 3e9 and report["stopped_by"] == "signal"


def test_a_quota_bounds_the_bytes_of_an_address(tmp_path: Path) -> None:
    """Of 100 kB in ten days."""
    with receiving(tmp_path, "--quota", "100k/10d") as server:

        def ask(*options: str, bind: str = "127.0.0.1") -> tuple[int, str]:
            done = send_raw(server.port, "--size", "1000", "--bind", bind, "--wait", "5", *options)
            return done.returncode, done.stderr.decode()

        assert ask("--count", "101")[0] == 4  # more than all
        assert ask("--count", "60")[0] == 0
        code, message = ask("--count", "50")
        assert code == 4 and message.count("\n") == 1 and "--quota" in message
        assert "has 40 kB left of 100 kB" in message  # 0.1 B/s are added
        assert ask("--udp", "--rate", "1M", "--time", "0.1")[0] == 0  # 12.5 kB and a block at most
        assert ask("--udp", "--reverse", "--count", "20")[0] == 0
        code, message = ask("--time", "10")  # of no known amount
        assert code == 3, message
        assert ask("--count", "1")[0] == 4
        assert ask("--count", "100", bind="127.0.0.2")[0] == 0
        reports = server.wait_reports(5)
        cut = reports[3]
        assert (cut["stopped_by"], cut["stopped_at"]) == ("limit", "receiver")
        total = sum(report["bytes_received"] for report in reports[:4])
        assert 100_000 <= total < 100_000 + 600_000  # one read of TCP more at most


def test_a_test_that_moves_less_than_its_plan_gives_the_rest_back(tmp_path: Path) -> None:
    with receiving(tmp_path, "--quota", "1M/10d") as server:
        with sending_early(tmp_path, server.port, "--size", "100", "--rate", "500pps", "--bytes", "900k") as sender:
            sender.wait_blocks(100)
            refused = send_raw(server.port, "--bytes", "200k", "--wait", "0")
            assert refused.returncode == 4  # the first test runs
            assert sender.end(signal.SIGINT) == 130
        server.wait_reports(1)
        assert send(server.port, "--bytes", "500k", "--size", "1000", "--wait", "20")["bytes_received"] == 500_000


def test_a_quota_counts_requests_and_responses(tmp_path: Path) -> None:
    """Turns of 1 kB and 9 kB."""
    turns = tmp_path / "turns.txt"
    turns.write_text("1000 1 9000 1\n")
    with receiving(tmp_path, "--quota", "100k/10d") as server:
        assert send(server.port, "--turns", str(turns), "--count", "5")["blocks_received"] == 5
        refused = send_raw(server.port, "--bytes", "60k", "--size", "1000", "--wait", "5")
        assert refused.returncode == 4 and b"has 50 kB left" in refused.stderr
        cut = send_raw(server.port, "--turns", str(turns), "--count", "10", "--wait", "5")
        assert cut.returncode == 3
        report = server.wait_reports(2)[1]
    assert report["stopped_by"] == "limit" and 5 <= report["blocks_received"] <= 6


def ask_by_hand(control: socket.socket, plan: str) -> list[str]:
    """The receiver's answers to a plan of run 7."""
    lines = control.makefile("rw", newline="\n")
    lines.write(f"wiretale/1 nonce={'0' * 64}\ntest run=7 streams=1 time_ns=60000000000 idle_ns=1000000000 {plan}\n")
    lines.flush()
    answers = [lines.readline()]
    while not answers[-1].startswith(("ready", "refused")):
        answers.append(lines.readline())
    return answers


def read_most(data: socket.socket, most: int) -> int:
    """The bytes that come before the end or `most`."""
    got = 0
    with contextlib.suppress(ConnectionResetError):
        while got < most and (piece := data.recv(1 << 20)):
            got += len(piece)
    return got


@pytest.mark.parametrize(
    ("plan", "start", "first"),
    [
        ("direction=reverse sizes_text=50000000", b"start\n", b"data run=7 stream=0\n"),
        (
            "sizes_text=32,50000000 line_count=1 turns=1 longest_gap_ns=1000000000",
            b"lines list=32:0:50000000:0\nstart\n",
            block(0, 32, run=7, stream=0),
        ),
    ],
    ids=("reverse", "turns"),
)
def test_the_bytes_of_a_block_that_is_not_complete_count(tmp_path: Path, plan: str, start: bytes, first: bytes) -> None:
    """The client leaves before the end of a block of 50 MB; the receiver sends as much as the quota has."""
    with receiving(tmp_path, "--quota", "10M/10d") as server:
        with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) as control:
            assert ask_by_hand(control, plan)[-1] == "ready\n"
            control.sendall(start)
            with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) as data:
                data.sendall(first)
                assert 9_000_000 < read_most(data, 49_000_000) < 12_000_000
        refused = send_raw(server.port, "--count", "1", "--size", "1000", "--wait", "20")
        assert refused.returncode == 4 and b"--quota" in refused.stderr
        assert server.wait_reports(1)[0]["stopped_by"] == "limit"


def test_a_block_that_is_larger_than_the_limit_is_refused(tmp_path: Path) -> None:
    with receiving(tmp_path, "--max-bytes", "1M") as server:
        refused = send_raw(server.port, "--size", "1000001", "--time", "1")
        assert refused.returncode == 4 and b"--max-bytes" in refused.stderr


def test_duplicates_count_for_the_limit(tmp_path: Path) -> None:
    """One block that is sent again and again."""
    with (
        receiving(tmp_path, "--max-bytes", "1M") as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) as control,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
    ):
        *_, port, ready = ask_by_hand(control, "protocol=udp sizes_text=1000 unchecked=1")
        assert ready == "ready\n"
        control.sendall(b"start\n")
        datagrams.connect(("127.0.0.1", int(port.rpartition("port=")[2])))
        for _ in range(3000):
            datagrams.send(block(0, 1000, run=7, stream=0))
            time.sleep(0.0002)
        stopped = next(line for line in control.makefile() if line.startswith("stop"))
        assert "reason=limit" in stopped


@pytest.mark.parametrize("quota", ["10G", "10G/", "x/1h", "0/1h", "10G/1ms"])
def test_a_quota_needs_bytes_and_a_time(quota: str) -> None:
    done = subprocess.run([program(), "receive", "--quota", quota], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "10G/24h" in done.stderr


# --- a receiver without tests


def test_a_receiver_ends_if_no_test_begins_in_time(tmp_path: Path) -> None:
    """A test that lasts longer does not count as idle time."""
    with receiving(tmp_path, "--accept-timeout", "600ms") as receiver:
        send(receiver.port, "--udp", "--rate", "100pps", "--time", "2")
        assert receiver.process.wait(timeout=SECONDS) == 3
        assert len(receiver.reports()) == 1
        assert "no test began for 600 ms (--accept-timeout)" in receiver.errors.read_text()


def test_only_a_test_that_is_started_keeps_a_receiver(tmp_path: Path) -> None:
    """A connection that stays silent, a test that is refused, and one that is asked for after each other and not started."""
    plan = "sizes_text=100 direction=forward"
    with contextlib.ExitStack() as stack, receiving(tmp_path, "--accept-timeout", "1") as server:

        def connect() -> socket.socket:
            return stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS))

        begun = time.monotonic()
        connect()
        assert "at most 128 streams" in unquote(ask_by_hand(connect(), f"{plan} streams=129")[-1])
        control = connect()
        assert ask_by_hand(control, plan)[-1] == "ready\n"
        assert "no test began in time" in unquote(control.makefile().readline())
        assert server.process.wait(timeout=SECONDS) == 3
        assert 0.9 < time.monotonic() - begun < 4  # a sender has 5 s for its start
        assert "no test began for 1 s (--accept-timeout)" in server.errors.read_text() and not server.reports()


@pytest.mark.parametrize("options", [("--count", "20"), ("--udp", "--count", "20", "--reverse")])
def test_a_sender_ends_a_receiver_that_permits_it(tmp_path: Path, options: tuple[str, ...]) -> None:
    with receiving(tmp_path, "--let-stop") as server:
        assert (
            "anyone who reaches port" in server.errors.read_text() and "end this receiver" in server.errors.read_text()
        )
        assert not send(server.port, *options)["test"]["stop_receiver"]
        report = send(server.port, *options, "--stop-receiver")
        assert report["complete"] and report["blocks_received"] == 20 and report["test"]["stop_receiver"]
        assert server.process.wait(timeout=SECONDS) == 0
        assert [test["complete"] for test in server.reports()] == [True, True]
        assert "ended by a sender (--let-stop)" in server.errors.read_text()
        assert send_raw(server.port, "--count", "1").returncode == 4  # nothing listens


def test_no_sender_ends_a_receiver_that_does_not_permit_it(tmp_path: Path) -> None:
    with receiving(tmp_path) as server:
        done = send_raw(server.port, "--count", "1", "-x")
        assert done.returncode == 4 and not done.stdout
        assert b"refused: senders may not stop this receiver, which has no --let-stop" in done.stderr
        assert send(server.port, "--count", "3")["blocks_received"] == 3
        assert "end this receiver" not in server.errors.read_text()
        assert server.end() == 0


def test_only_holders_of_the_key_end_a_receiver(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(b"a key of more than thirty-two bytes")
    key.chmod(0o600)
    with receiving(tmp_path, "--key", str(key), "--let-stop") as server:
        assert "anyone" not in server.errors.read_text()
        done = send_raw(server.port, "--count", "1", "--stop-receiver")
        assert done.returncode == 4 and b"expected --key FILE" in done.stderr
        assert send(server.port, "--count", "1", "--key", str(key))["complete"]  # it goes on
        send(server.port, "--count", "1", "--key", str(key), "--stop-receiver")
        assert server.process.wait(timeout=SECONDS) == 0


def test_a_receiver_that_a_sender_ends_finishes_the_tests_of_others(tmp_path: Path) -> None:
    with receiving(tmp_path, "--let-stop", "--parallel", "2", "--per-address", "2") as server:
        plan = ("--rate", "100pps", "--size", "100", "--time", "2", "--interval", "100ms")
        slow = subprocess.Popen(sending(server.port, *plan), stdout=subprocess.PIPE)
        assert slow.stdout and b"interval" in slow.stdout.readline()  # it runs
        send(server.port, "--count", "1", "--stop-receiver")
        refused = b"refused: the receiver ends: a sender has stopped it"
        wait_until(lambda: refused in send_raw(server.port, "--count", "1").stderr, server.errors.read_text)
        report = json.loads(slow.communicate(timeout=SECONDS)[0].splitlines()[-1])
        assert report["complete"] and report["blocks_received"] == report["blocks_sent"] >= 150
        assert server.process.wait(timeout=SECONDS) == 0


def test_an_address_has_one_slot_of_several(tmp_path: Path) -> None:
    with (
        receiving(tmp_path, "--parallel", "3") as server,
        sending_early(tmp_path, server.port, "--bind", "127.0.0.1", *LONG) as first,
    ):
        first.wait_blocks(1)
        refused = send_raw(server.port, "--bind", "127.0.0.1", "--count", "1")
        assert refused.returncode == 4 and b"another test of this address is running (--per-address)" in refused.stderr
        assert send(server.port, "--bind", "127.0.0.2", "--count", "1")["complete"]
        assert first.end(signal.SIGINT) == 130


def test_files_have_a_limit_which_the_start_names(tmp_path: Path) -> None:
    folder, source = tmp_path / "in", tmp_path / "some.bin"
    folder.mkdir()
    source.write_bytes(bytes(300_000))
    with receiving(tmp_path, "--output-dir", str(folder), "--total-size", "500k") as server:
        begin = server.errors.read_text()
        assert f"may run tests, write files to {folder}" in begin and "at most 500 kB in all (--total-size)" in begin
        assert send(server.port, "--file", str(source))["complete"]
        (tmp_path / "more.bin").write_bytes(bytes(300_000))
        done = send_raw(server.port, "--file", str(tmp_path / "more.bin"), "--wait", "5")
        assert done.returncode == 3 and b"Disk quota exceeded" in done.stderr
        server.wait_reports(2)
        assert [path.name for path in folder.iterdir()] == ["some.bin"]


def test_a_service_has_no_rights(tmp_path: Path) -> None:
    with receiving(tmp_path) as server:
        status = dict(
            line.split(":\t", 1) for line in Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
        )
    assert int(status["CapPrm"], 16) == int(status["CapEff"], 16) == 0 and "0" not in status["Uid"].split()
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


def test_the_service_is_confined(tmp_path: Path) -> None:
    places = (f"DESTDIR={tmp_path}", "PREFIX=/usr", "UNITDIR=/lib/systemd/system")
    made = ("-o", str(program()), f"PROGRAM={program()}")  # it is not compiled again
    output("make", "-s", "-C", str(ROOT / "traffic"), "install", *made, *places)
    unit = tmp_path / "lib/systemd/system/wiretale-receive.service"
    assert "ExecStart=/usr/bin/wiretale-traffic receive $OPTIONS" in unit.read_text()
    defaults = (tmp_path / "etc/default/wiretale-receive").read_text().splitlines()[-1]
    options = shlex.split(defaults.removeprefix("OPTIONS="))[0].split()
    help_text = output(str(tmp_path / "usr/bin/wiretale-traffic"), "receive", "--help")
    assert {option for option in options if option.startswith("--")} <= set(re.findall(r"--[a-z-]+", help_text))
    needs.skip_without(needs.programs("systemd-analyze"))
    messages = output("systemd-analyze", "security", "--offline=true", "--threshold=20", str(unit))
    assert float(re.findall(r"exposure level for .*: ([\d.]+)", messages)[0]) <= 2.0
