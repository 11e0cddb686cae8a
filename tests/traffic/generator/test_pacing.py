# SPDX-License-Identifier: Apache-2.0
"""A paced sender reports how it kept its rate: held up for a known time, limited in catching up, with and without priority."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import needs
from lab_bench import NEEDED, lab_of
from traffic_ends import SECONDS, Receiver, Report, receiving, send, send_raw, sending, undisturbed
from wiretale.traffic.lab.state import Lab

pytestmark = pytest.mark.xdist_group("live")

HELD_S = 0.3
PORT = 5013
# 8 Mbit/s are sent; more than 8 packets at once do not fit into the queue.
PROFILE = '[both]\nrate = "20Mbit"\ndelay = "1ms"\nqueue = 8'


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    with receiving(tmp_path_factory.mktemp("receiver"), "--parallel", "4", "--per-address", "4") as running:
        yield running


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab_of(PROFILE, "pacing", tmp_path_factory.mktemp("lab")) as running:
        yield running


def held_up(command: list[str]) -> Report:
    """The report of a sender that is stopped for HELD_S after half a second."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    time.sleep(0.5)
    process.send_signal(signal.SIGSTOP)
    time.sleep(HELD_S)
    process.send_signal(signal.SIGCONT)
    out, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    report: Report = json.loads(out.splitlines()[-1])
    return report


def test_a_quiet_run_is_of_constant_rate(receiver: Receiver) -> None:
    def check() -> None:
        report = send(receiver.port, "--udp", "--rate", "200pps", "--count", "100")
        sender = report["sender"]
        assert sender["constant_rate"] is True
        assert 0 <= sender["late_p50_ns"] <= sender["late_p99_ns"] <= sender["late_max_ns"] < 5_000_000
        assert (sender["largest_burst"], sender["moved_ns"]) == (1, 0)
        assert report["receiver"]["blocks_missing_in_catch_up"] == 0

    undisturbed(check)


def test_a_sender_of_short_gaps_seldom_sleeps_and_leaves_time_to_others(receiver: Receiver) -> None:
    """A real-time thread that used 95% of a processor would be stopped by the kernel."""
    command = sending(receiver.port, "--udp", "--size", "200", "--rate", "10000pps", "--count", "10000")

    def check() -> None:
        begin = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        assert used.ru_nvcsw < 7000  # a sleep in each gap: 10,000
        assert used.ru_utime + used.ru_stime < 0.95 * (time.monotonic() - begin)

    undisturbed(check)


@pytest.mark.parametrize("protocol", ["--udp", "--tcp"])
def test_a_sender_that_was_held_up_says_so(receiver: Receiver, protocol: str) -> None:
    """Of 1,000 blocks a second, those of the time in which it was stopped are sent at once."""
    command = sending(receiver.port, protocol, "--size", "100", "--rate", "1000pps", "--count", "1200")

    def check() -> None:
        report = held_up(command)
        sender = report["sender"]
        held_ns, due = HELD_S * 1e9, 1000 * HELD_S
        assert sender["late_max_ns"] >= 0.9 * held_ns and sender["largest_burst"] >= 0.9 * due
        assert sender["late_p99_ns"] >= 0.9 * held_ns  # a quarter of all blocks was late
        assert (sender["constant_rate"], sender["moved_ns"], sender["blocks_sent"]) == (False, 0, 1200)
        missing = report["receiver"]["blocks_missing_in_catch_up"]
        assert (missing is None) is (protocol == "--tcp")

    undisturbed(check)


def test_burst_cap_moves_the_schedule_instead(receiver: Receiver) -> None:
    options = ("--udp", "--size", "100", "--rate", "1000pps", "--count", "1200", "--burst-cap", "10")

    def check() -> None:
        sender = held_up(sending(receiver.port, *options))["sender"]
        assert sender["largest_burst"] <= 10 and sender["constant_rate"] is False
        assert sender["moved_ns"] >= 0.9 * HELD_S * 1e9 - 10e6
        assert sender["elapsed_s"] == pytest.approx(1.199 + sender["moved_ns"] / 1e9, abs=0.1)

    undisturbed(check)


@NEEDED
def test_losses_in_catching_up_are_counted(tmp_path: Path, lab: Lab) -> None:
    """The blocks that a sender sends at once after it was stopped overflow a queue that its rate does not fill."""
    at_sender = tuple(lab.inside("sender"))
    options = ("--udp", "--size", "1000", "--rate", "1000pps", "--count", "1200")
    with receiving(tmp_path, inside=tuple(lab.inside("receiver")), port=PORT):

        def check() -> None:
            report = send(PORT, *options, host="10.99.0.2", inside=at_sender)
            assert (report["blocks_lost"], report["receiver"]["blocks_missing_in_catch_up"]) == (0, 0)

        def check_held_up() -> None:
            report = held_up(sending(PORT, *options, host="10.99.0.2", inside=at_sender))
            lost, beside = report["blocks_lost"], report["receiver"]["blocks_missing_in_catch_up"]
            assert lost >= 100 and 0.9 * lost <= beside <= lost

        undisturbed(check)
        undisturbed(check_held_up)


@needs.marked(needs.root())
@pytest.mark.parametrize(("option", "priority"), [((), True), (("--no-real-time",), False)])
def test_real_time_priority(receiver: Receiver, option: tuple[str, ...], priority: bool) -> None:
    """The kernel's answer about each thread, and the report."""
    command = sending(receiver.port, "--udp", "--rate", "500pps", "--time", "1", *option)

    def check() -> None:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        policies = set()
        while process.poll() is None:
            with contextlib.suppress(OSError):  # a thread has ended
                policies |= {
                    os.sched_getscheduler(int(task.name)) for task in Path(f"/proc/{process.pid}/task").iterdir()
                }
            time.sleep(0.02)
        out, _ = process.communicate(timeout=SECONDS)
        assert (os.SCHED_FIFO in policies) is priority
        assert json.loads(out)["sender"]["real_time"] is priority

    undisturbed(check)


@needs.marked(needs.root(), needs.programs("chrt"))
@pytest.mark.parametrize("options", [("--rate", "500pps"), ()])
def test_a_given_priority_stays(receiver: Receiver, options: tuple[str, ...]) -> None:
    """The user's priority is higher than that which the sender takes itself, also if there is no rate."""
    command = sending(receiver.port, "--udp", "--size", "1000", "--time", "0.5", *options, inside=("chrt", "-f", "7"))

    def check() -> None:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        policies = set()
        while process.poll() is None:
            with contextlib.suppress(OSError):  # a thread has ended
                for task in Path(f"/proc/{process.pid}/task").iterdir():
                    policies.add(
                        (os.sched_getscheduler(int(task.name)), os.sched_getparam(int(task.name)).sched_priority)
                    )
            time.sleep(0.02)
        out, _ = process.communicate(timeout=SECONDS)
        assert policies - {(os.SCHED_OTHER, 0)} == {(os.SCHED_FIFO, 7)}  # the usual one before chrt has changed it
        assert json.loads(out)["sender"]["real_time"] is (True if options else None)

    undisturbed(check)


@needs.marked(needs.root())
def test_without_the_right_to_priority_it_sends_as_usual(receiver: Receiver) -> None:
    inside = ("setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice")
    sender = send(receiver.port, "--udp", "--rate", "500pps", "--count", "50", inside=inside)["sender"]
    assert (sender["real_time"], sender["blocks_sent"]) == (False, 50)


def test_without_a_rate_nothing_is_late(receiver: Receiver) -> None:
    report = send(receiver.port, "--udp", "--count", "10")
    sender = report["sender"]
    assert report["receiver"]["blocks_missing_in_catch_up"] is None
    names = ("late_p50_ns", "late_p99_ns", "late_max_ns", "largest_burst", "moved_ns", "real_time", "constant_rate")
    assert {name: sender[name] for name in names} == dict.fromkeys(names)


@pytest.mark.parametrize(("option", "segments"), [((), 1), (("--write-each",), 10)])
def test_each_block_is_written_on_its_own(receiver: Receiver, option: tuple[str, ...], segments: int) -> None:
    """By the kernel's count: ten blocks fit into the first window of congestion, and no-delay keeps them apart."""

    def check() -> None:
        report = send(receiver.port, "--size", "64", "--count", "10", "--no-delay", *option)
        assert report["sender"]["tcp_info"][-1]["data_segments_sent"] == segments
        assert report["test"]["write_each"] is bool(option)

    undisturbed(check)


def test_gaps_of_the_kernel_are_no_silence(receiver: Receiver) -> None:
    """On a path this short the kernel sends 10 segments at once, every 0.16 s at 500 kbit/s."""
    options = ("--fq-rate", "500k", "--mss", "1000", "--size", "100k", "--count", "1", "--idle", "0.1")
    report = send(receiver.port, *options)
    assert report["blocks_received"] == 1 and report["receiver"]["elapsed_s"] > 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--udp", "--fq-rate", "1M"), "--fq-rate: expected no --udp; --kernel-pacing lets the kernel pace datagrams"),
        (("--fq-rate", "99k"), "--fq-rate '99k': expected bits per second from 100k on, as in 50M or 1.5G"),
        (("--fq-rate", "100pps"), "--fq-rate '100pps': expected bits per second"),
        (("--fq-rate", "10T"), "--fq-rate '10T': expected bits per second"),
        (("--burst-cap", "5"), "--burst-cap: expected a --rate or a --pattern as well"),
        (("--rate", "1M", "--burst", "9", "--burst-cap", "5"), "--burst-cap: expected at least the N of --burst"),
        (("--udp", "--write-each"), "--write-each: expected no --udp"),
    ],
)
def test_contradictions(receiver: Receiver, options: tuple[str, ...], message: str) -> None:
    done = send_raw(receiver.port, *options)
    assert done.returncode == 2 and message in done.stderr.decode() and not done.stdout
