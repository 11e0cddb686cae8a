# SPDX-License-Identifier: Apache-2.0
"""A real path that drops before and behind its tracer: where blocks were lost, against the counters of those that dropped."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

import needs
from capture_points import ledger_of
from checkout import ROOT
from dropping_path import NamespacePath, made, missing
from processes import wait_until
from wiretale.analyzer.compare.comparison import compare_captures
from wiretale.traffic.program import program_path

pytestmark = pytest.mark.xdist_group("counted")

ENDS = ROOT / "tests" / "support" / "models" / "block_ends.py"
COUNT = 4000
RECEIVER, PORT = "10.215.3.2", 6000


class TracedPath(NamespacePath):
    """Sender, a router that drops, a tracer that captures and then drops too, receiver."""

    def __init__(self) -> None:
        super().__init__(*"srtd")
        self.sender, self.router, self.tracer, self.receiver = self.names

    def make(self) -> None:
        super().make()
        for number, (left, right) in enumerate(pairwise(self.names), start=1):
            net = f"10.215.{number}"
            self.connect((left, "right", f"{net}.1"), (right, "left", f"{net}.2"))
        self.route(self.sender, "default", "10.215.1.2")
        self.route(self.router, "10.215.3.0/24", "10.215.2.2")
        self.route(self.tracer, "10.215.1.0/24", "10.215.2.1")
        self.route(self.receiver, "default", "10.215.3.1")

    @contextlib.contextmanager
    def capturing(self, folder: Path) -> Iterator[list[Path]]:
        """Captures at three points, in the order of the way."""
        points = {"sender": "right", "tracer": "left", "receiver": "left"}
        files = [folder / f"{name}.pcap" for name in points]
        with contextlib.ExitStack() as stack:
            for (name, link), file in zip(points.items(), files, strict=True):
                stack.enter_context(self.capture(getattr(self, name), link, file, "--time-stamp-precision", "nano"))
            yield files


@pytest.fixture(scope="module")
def path() -> Iterator[TracedPath]:
    needs.skip_without(missing())
    with made(TracedPath()) as path:
        yield path


def talk(path: TracedPath, server: list[str], client: list[str], ready: str) -> tuple[str, str]:
    """Returns the output of both programs."""
    with subprocess.Popen(
        path.inside(path.receiver, *server), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            wait_until(
                lambda: ready in path.run(path.receiver, "cat", "/proc/net/udp", "/proc/net/tcp"), "the server listens"
            )
            sender_log = path.run(path.sender, *client)
            heard, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert not process.returncode, errors
    return sender_log, heard


def logs_of(folder: Path, sender_log: str, heard: str) -> dict[str, str]:
    """The reports of both ends, as arguments of a comparison."""
    (folder / "send.json").write_text(sender_log)
    (folder / "receive.json").write_text(heard)
    return {"sender_log": str(folder / "send.json"), "receiver_log": str(folder / "receive.json")}


def test_losses_are_where_the_counters_say(path: TracedPath, tmp_path: Path) -> None:
    packets = f"udp dport {PORT} udp length 408"
    path.drop(path.router, packets, 30)
    path.drop(path.tracer, packets, 50)
    with path.capturing(tmp_path) as files:
        program = [sys.executable, str(ENDS)]
        sender_log, heard = talk(
            path, [*program, "receive", str(COUNT)], [*program, "send", str(COUNT)], f":{PORT:04X} "
        )
    logs = logs_of(tmp_path, sender_log, heard)
    received = json.loads(heard)["receiver"]
    assert received["host_dropped"] > 0
    with compare_captures(*map(str, files), **logs) as comparison:
        ledger = ledger_of(comparison, "blocks")
        assert ledger.lost == {
            "before_tracer": path.dropped_by(path.router),
            "after_tracer": path.dropped_by(path.tracer),
            "receiver_kernel": received["host_dropped"],
        }
        assert (ledger.sent, ledger.arrived) == (COUNT, received["blocks_received"])
        (clock,) = [host_clock for host_clock in comparison.clocks if (host_clock.earlier, host_clock.later) == (0, 2)]
        assert clock.offset_ns is not None and clock.error_ns is not None
        assert abs(clock.offset_ns) <= clock.error_ns  # one machine, one clock
        for delay in comparison.delays:
            least = delay.summary["min"]
            assert delay.absolute and least is not None and -delay.error_ns <= least < 50e6


def test_retransmitted_segments_are_lost_where_the_counters_say(path: TracedPath, tmp_path: Path) -> None:
    needs.skip_without(needs.programs("iperf3"))
    packets = "tcp dport 5201 meta length > 400"
    path.drop(path.router, packets, 10)
    path.drop(path.tracer, packets, 15)
    with path.capturing(tmp_path) as files:
        client = ["iperf3", "-c", RECEIVER, "-n", "2M", "-M", "1000"]
        talk(path, ["iperf3", "-4", "-s", "-1"], client, f":{5201:04X} ")
        wait_until(
            lambda: "tcp" not in path.run(path.sender, "ss", "-tnH", "state", "established"), "connections are closed"
        )
    with compare_captures(*map(str, files)) as comparison:
        ledger = ledger_of(comparison, "packets")
        assert ledger.lost == {
            "before_tracer": path.dropped_by(path.router),
            "after_tracer": path.dropped_by(path.tracer),
        }
        assert not [stage for stage in ledger.stages if stage.missed]


def test_the_generators_own_logs_agree_with_the_captures(path: TracedPath, tmp_path: Path) -> None:
    program = program_path("wiretale-traffic")
    if not program:
        pytest.skip("needs wiretale-traffic")
    packets = "meta l4proto udp meta length > 1000"
    path.drop(path.router, packets, 20)
    path.drop(path.tracer, packets, 30)
    with path.capturing(tmp_path) as files:
        server = [program, "receive", "--port", str(PORT), "--json", "--once"]
        client = [program, "send", RECEIVER, "--port", str(PORT), "--json", "--udp", "--size", "1200"]
        client += ["--count", "3000", "--rate", "40M"]
        sender_log, heard = talk(path, server, client, f":{PORT:04X} ")
    logs = logs_of(tmp_path, sender_log, heard)
    with compare_captures(*map(str, files), **logs) as comparison:
        ledger = ledger_of(comparison, "blocks")
        lost = {"before_tracer": path.dropped_by(path.router), "after_tracer": path.dropped_by(path.tracer)}
        assert {place: count for place, count in ledger.lost.items() if place in lost} == lost
        assert (ledger.sent, ledger.arrived) == (3000, json.loads(sender_log)["blocks_received"])
