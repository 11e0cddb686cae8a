# SPDX-License-Identifier: Apache-2.0
"""One-way delays: those of a lab with known delays, and of ends by hand whose clocks are wrong by a known amount."""

from __future__ import annotations

import contextlib
import hashlib
import json
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab_bench import NEEDED, lab_of
from numbered_payloads import block
from traffic_ends import SECONDS, Receiver, Report, free_port, receiving, send, sending, table_of, undisturbed
from wiretale.traffic.lab.state import Lab

pytestmark = pytest.mark.xdist_group("live")

MS = 1_000_000
PORT = 5014
PROFILE = '[forward]\nrate = "100Mbit"\ndelay = "30ms"\n[reverse]\nrate = "100Mbit"\ndelay = "5ms"'
OFFSET_NS = 5_000 * MS
DELAY_NS = 40 * MS
COUNT = 50
NONCE = "ab" * 32


def delays(report: Report, end: str = "receiver") -> list[int | None]:
    return [report[end][f"delay_{which}_ns"] for which in ("p50", "p99", "max")]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab_of(PROFILE, "delays", tmp_path_factory.mktemp("lab")) as running:
        yield running


@NEEDED
def test_the_delays_of_a_lab(tmp_path: Path, lab: Lab) -> None:
    """Both hosts have one clock, so that the different delays of both directions are found."""
    inside = tuple(lab.inside("receiver"))
    with receiving(tmp_path, inside=inside, port=PORT) as receiver:

        def check() -> None:
            done = len(receiver.reports())
            options = ("--udp", "--both", "--size", "100", "--rate", "500pps", "--count", "500", "--streams", "2")
            report = send(PORT, *options, host="10.99.0.2", inside=tuple(lab.inside("sender")))
            there = receiver.wait_reports(done + 1)[-1]
            assert report["clock"] == there["clock"] == {"model": "same clock", "offset_ns": 0, "error_ns": 0}
            for end, true_ns in (("receiver", 30 * MS), ("reverse_receiver", 5 * MS)):
                p50, p99, most = quantiles = delays(report, end)
                assert quantiles == delays(there, end)
                assert p50 is not None and p99 is not None and most is not None
                assert true_ns <= p50 <= 1.004 * true_ns + 0.5 * MS  # quantiles are at most 0.4% too high
                assert p50 <= p99 <= most
                streams = report[end]["streams"]
                assert most == max(stream["delay_max_ns"] for stream in streams)

        undisturbed(check)


def test_delays_over_tcp_are_null(tmp_path: Path) -> None:
    with receiving(tmp_path) as receiver:
        report = send(receiver.port, "--count", "5")
    assert report["clock"] is None and delays(report) == [None] * 3


class SkewedReceiver(threading.Thread):
    """Sends blocks in reverse that were, by its own clock, sent DELAY_NS before they left."""

    def __init__(
        self,
        port: int,
        *,
        lag_s: float = 0.0,
        step_ns: int = 0,
        host: bool = False,
        offset_ns: int = OFFSET_NS,
        silent: bool = False,
    ) -> None:
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", port))
        self.offset_ns, self.lag_s, self.step_ns, self.host = offset_ns, lag_s, step_ns, host
        self.silent, self.has_sent = silent, False  # silent: no answer to the second measurement
        self.run_number, self.ends = 0, 0

    def now_ns(self) -> int:
        return time.time_ns() + self.offset_ns

    def run(self) -> None:
        self.listener.settimeout(SECONDS)
        with self.listener, self.listener.accept()[0] as self.control:
            self.control.settimeout(SECONDS)
            for line in self.control.makefile():
                word, *fields = line.split()
                self.answer(word, dict(field.split("=", 1) for field in fields))
                if word == "done":
                    return

    def say(self, *lines: str) -> None:
        self.control.sendall("".join(f"{line}\n" for line in lines).encode())

    def answer(self, word: str, fields: dict[str, str]) -> None:
        if word == "wiretale/1":
            self.say(f"wiretale/1 nonce={NONCE}")
        elif word == "test":
            self.run_number = int(fields["run"])
            self.say("ready")
        elif word == "port":
            self.port = int(fields["port"])
        elif word == "clock" and not (self.silent and self.has_sent):
            read_ns = self.now_ns()
            time.sleep(self.lag_s)  # as if the way back were longer
            clock = f"clock sent_ns={fields['sent_ns']} received_ns={read_ns} replied_ns={read_ns}"
            self.say(f"{clock} host={self.own_name()}" if self.host else clock)
        elif word == "start":
            self.send_blocks()

    def own_name(self) -> str:
        boot_id = Path("/proc/sys/kernel/random/boot_id").read_bytes()
        return hashlib.blake2b(boot_id, key=self.run_number.to_bytes(16, "little"), digest_size=16).hexdigest()

    def send_blocks(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as data:
            for number in range(COUNT):
                sent_ns = self.now_ns() - DELAY_NS
                content = block(number, 100, run=self.run_number, stream=0, sent_ns=sent_ns)
                data.sendto(content, ("127.0.0.1", self.port))
                time.sleep(0.002)
        self.offset_ns += self.step_ns
        self.has_sent = True
        self.say(f"sent way=reverse stream=0 blocks_sent={COUNT} bytes_sent={100 * COUNT}", "end way=reverse")


def receive_from(receiver: SkewedReceiver, port: int) -> Report:
    receiver.start()
    options = ("--udp", "--reverse", "--size", "100", "--count", str(COUNT), "--wait", "5")
    done = subprocess.run(sending(port, *options), capture_output=True, text=True, timeout=SECONDS)
    receiver.join(SECONDS)
    assert done.returncode == 0, done.stderr
    report: Report = json.loads(done.stdout)
    assert report["blocks_received"] == COUNT
    return report


@pytest.mark.parametrize("lag_ms", [0, 20])
def test_the_offset_is_measured_within_its_error(lag_ms: int) -> None:
    """Also if the way back is longer, which no measurement can see: the error covers it."""

    def check() -> None:
        port = free_port()
        report = receive_from(SkewedReceiver(port, lag_s=lag_ms / 1000), port)
        clock, (p50, *_) = report["clock"], delays(report)
        assert clock["model"] == "measured offset"
        assert abs(clock["offset_ns"] - OFFSET_NS) <= clock["error_ns"] <= (lag_ms / 2 + 3) * MS
        assert p50 is not None and abs(p50 - DELAY_NS) <= clock["error_ns"] + 0.004 * DELAY_NS + 1 * MS
        assert clock["error_ns"] >= lag_ms / 2 * MS

    undisturbed(check)


@pytest.mark.parametrize(("offset_ns", "model"), [(0, "same clock"), (OFFSET_NS, "measured offset")])
def test_the_same_kernel_with_another_clock_is_measured(offset_ns: int, model: str) -> None:
    """As with two machines from one snapshot, which have the same boot_id."""
    port = free_port()
    receiver = SkewedReceiver(port, host=True, offset_ns=offset_ns)
    assert receive_from(receiver, port)["clock"]["model"] == model


def test_a_clock_that_was_set_meanwhile_gives_no_delays() -> None:
    port = free_port()
    report = receive_from(SkewedReceiver(port, step_ns=2_000 * MS), port)
    assert report["clock"] is None and delays(report) == [None] * 3


def test_a_second_measurement_without_an_answer_gives_no_delays() -> None:
    port = free_port()
    report = receive_from(SkewedReceiver(port, silent=True), port)
    assert report["clock"] is None and delays(report) == [None] * 3


def test_the_error_of_a_transfer_that_was_stopped_has_the_drift(tmp_path: Path) -> None:
    """100 ppm of the time since the start; nothing was measured at the end."""
    with receiving(tmp_path) as receiver:
        before = time.monotonic_ns()
        begin = f"offset ahead_ns={OFFSET_NS} error_ns=1000 is_known=1"
        report = receive_by_hand(receiver, begin, "stop reason=signal", pause_s=2)
        most = (time.monotonic_ns() - before) / 10_000
    assert 1000 + 2e9 / 10_000 <= report["clock"]["error_ns"] <= 1000 + most


def receive_by_hand(receiver: Receiver, *offsets: str, pause_s: float = 0.0) -> Report:
    """The receiver's report about a sender by hand whose clock is OFFSET_NS behind."""
    done = len(receiver.reports())
    with contextlib.ExitStack() as stack:
        control = stack.enter_context(socket.create_connection(("127.0.0.1", receiver.port), timeout=SECONDS))
        data = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        lines = control.makefile()
        plan = f"protocol=udp direction=forward streams=1 sizes_text=100 count={COUNT} idle_ns=300000000"
        control.sendall(f"wiretale/1 nonce={NONCE}\ntest run=7 {plan}\n".encode())
        port = next(int(line.rsplit("=", 1)[1]) for line in lines if line.startswith("port"))
        control.sendall(b"clock sent_ns=1000\n")
        answer = next(line for line in lines if line.startswith("clock"))
        assert "sent_ns=1000" in answer and abs(int(answer.split("received_ns=")[1].split()[0]) - time.time_ns()) < 60e9
        control.sendall(f"{offsets[0]}\nstart\n".encode())
        for number in range(COUNT):
            sent_ns = time.time_ns() - OFFSET_NS - DELAY_NS
            data.sendto(block(number, 100, stream=0, sent_ns=sent_ns), ("127.0.0.1", port))
        time.sleep(pause_s)
        ends = f"sent way=forward stream=0 blocks_sent={COUNT} bytes_sent={100 * COUNT}\nend way=forward\n"
        control.sendall("".join(f"{line}\n" for line in offsets[1:]).encode() + ends.encode())
        return receiver.wait_reports(done + 1)[-1]


def test_the_receiver_uses_the_offset_that_the_sender_measured(tmp_path: Path) -> None:
    begin = f"offset ahead_ns={OFFSET_NS} error_ns=1000 is_known=1"
    with receiving(tmp_path) as receiver:

        def check(end: str, true_ns: int) -> None:
            report = receive_by_hand(receiver, begin, end)
            p50, *_ = delays(report)
            assert report["clock"]["error_ns"] == 2000
            assert p50 is not None and true_ns - 1 * MS <= p50 <= 1.004 * true_ns + 3 * MS

        same = f"offset ahead_ns={OFFSET_NS} error_ns=2000 is_known=1"
        undisturbed(lambda: check(same, DELAY_NS))
        drifted = f"offset ahead_ns={OFFSET_NS + 10 * MS} error_ns=2000 is_known=1"
        undisturbed(lambda: check(drifted, DELAY_NS - 10 * MS))
        unknown = receive_by_hand(receiver, begin, "offset")
        assert unknown["clock"] is None and delays(unknown) == [None] * 3


@pytest.mark.parametrize("largest", [2**61, 2**61 + 1])
def test_offsets_of_a_peer_are_bounded(tmp_path: Path, largest: int) -> None:
    """The sums of the largest times fit, and more is refused."""
    with receiving(tmp_path) as receiver:
        lines = f"offset behind_ns={largest} is_known=1", f"offset ahead_ns={largest} error_ns={largest} is_known=1"
        if largest == 2**61:
            assert receive_by_hand(receiver, *lines)["blocks_received"] == COUNT
            return
        with socket.create_connection(("127.0.0.1", receiver.port), timeout=SECONDS) as control:
            plan = "protocol=udp direction=forward streams=1 sizes_text=100 count=5 idle_ns=300000000"
            control.sendall(f"wiretale/1 nonce={NONCE}\ntest run=7 {plan}\n{lines[0]}\nstart\n".encode())
            assert any("refused" in line and "bounds" in line for line in control.makefile())


def test_the_delay_and_its_error_are_in_the_table(tmp_path: Path) -> None:
    with receiving(tmp_path) as receiver:
        table = table_of(receiver.port, "--udp", "--count", "10", "--rate", "1M")
    (line,) = [line for line in table.splitlines() if line.startswith("  one-way delay")]
    assert line.endswith("; same clock")
