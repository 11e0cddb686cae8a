# SPDX-License-Identifier: Apache-2.0
"""Ends of real kernels that slow a transfer down, captured at both: each capture names the same cause."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import ends_talk
import wiretale
from lab_bench import NEEDED, NEEDS_TRAFFIC, lab_of
from wiretale.traffic.lab.capture import captures
from wiretale.traffic.lab.state import Lab

pytestmark = [pytest.mark.xdist_group("live"), NEEDED, NEEDS_TRAFFIC]

PROFILE = '[both]\nrate = "100Mbit"\ndelay = "10ms"\nqueue = 1000\n'
CLIENT, SERVER = "10.99.0.1", "10.99.0.2"
#: kind, what its sentence has
KINDS = {
    "slow-server": "answer 8 requests",
    "slow-dependency": f"{SERVER}:5001 is slow because of {CLIENT}:6001",
    "serial-requests": "70 round trips of 2",
    "reconnects": "Each of 40 requests",
    "client-pause": "25 answers",
    "expect-continue": "Each of 3 uploads to app.example:5001 waits 1 s",
    "nagle-delack": "by 40 ms",
    "zero-window": f"{SERVER}:5001 reads too slowly",
    "small-window": f"receive window of {SERVER}:5001",
    "send-buffer": f"{CLIENT}:",
    "app-limited": f"The application at {CLIENT}:",
    "no-window-scaling": f"The SYN-ACK of {SERVER}:5001 lacks",
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab_of(PROFILE, "ends", tmp_path_factory.mktemp("lab")) as running:
        yield running


@contextmanager
def server(lab: Lab, host: str, kind: str) -> Iterator[None]:
    addresses = (SERVER, CLIENT)[:: 1 if host == "receiver" else -1]
    command = lab.inside(host, sys.executable, ends_talk.__file__, "server", kind, *addresses)
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout and process.stdout.readline() == b"ready\n"
            yield
        finally:
            process.kill()


def scale_windows(lab: Lab, on: bool) -> None:
    subprocess.run(lab.inside("receiver", "sysctl", "-qw", f"net.ipv4.tcp_window_scaling={int(on)}"), check=True)


@pytest.mark.parametrize("kind", KINDS)
def test_both_ends_name_the_cause(lab: Lab, kind: str, tmp_path: Path) -> None:
    scale_windows(lab, kind != "no-window-scaling")
    with ExitStack() as stack:
        stack.enter_context(captures(lab, tmp_path))
        if kind == "slow-dependency":
            stack.enter_context(server(lab, "sender", "back"))
        stack.enter_context(server(lab, "receiver", kind))
        command = lab.inside("sender", sys.executable, ends_talk.__file__, "client", kind, SERVER)
        subprocess.run(command, check=True, timeout=60)
    for side in ("before", "after"):
        (file,) = (tmp_path / side).glob("*.pcap*")
        answer = wiretale.analyze(file).answer
        assert answer.cause == kind, (side, answer.sentence)
        assert KINDS[kind] in answer.sentence, (side, answer.sentence)
