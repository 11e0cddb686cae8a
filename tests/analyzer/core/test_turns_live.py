# SPDX-License-Identifier: Apache-2.0
"""A server that computes and a client that pauses for known times, over wiretale-link, captured at both ends of the path."""

from __future__ import annotations

import statistics
import subprocess
import sys
from pathlib import Path

import pytest

import wiretale
from lab_bench import NEEDED
from wiretale.traffic.lab.capture import captures
from wiretale.traffic.lab.lifecycle import lab_for_run
from wiretale.traffic.lab.profile import make_profile

pytestmark = [NEEDED, pytest.mark.xdist_group("live")]
SERVER, PAUSE = (0.2, 0.8, 0.2, 0.2), 0.3  # s
NEAR_NS = 5_000_000  # and 1%
ANSWER = """
import socket, sys, time
listening = socket.create_server(("10.99.0.2", 8080))
print("ready", flush=True)
peer, _ = listening.accept()
for wait in sys.argv[1:]:
    got = b""
    while not got.endswith(b"."):
        got += peer.recv(65536)
    time.sleep(float(wait))
    peer.sendall(bytes(20000) + b".")
"""
ASK = """
import socket, sys, time
peer = socket.create_connection(("10.99.0.2", 8080))
for _ in sys.argv[2:]:
    peer.sendall(bytes(3000) + b".")
    got = b""
    while not got.endswith(b"."):
        got += peer.recv(65536)
    time.sleep(float(sys.argv[1]))
"""


def test_each_part_is_measured_at_both_ends(tmp_path: Path) -> None:
    profile = make_profile("trial", '[both]\ndelay = "20ms"\n', "trial", tmp_path)
    waits = [str(wait) for wait in SERVER]
    with lab_for_run(profile, tmp_path) as lab, captures(lab, tmp_path):
        answer = lab.inside("receiver", sys.executable, "-c", ANSWER, *waits)
        with subprocess.Popen(answer, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout and server.stdout.readline() == "ready\n"
            subprocess.run(lab.inside("sender", sys.executable, "-c", ASK, str(PAUSE), *waits), check=True, timeout=60)
    for point, network in (("before", 40e6), ("after", 0.0)):
        (path,) = (tmp_path / point).glob("*.pcap*")
        rows = wiretale.analyze(path).turns.rows()
        assert len(rows) == len(SERVER)
        for row, wait in zip(rows, SERVER, strict=True):
            assert row["server_ns"] == pytest.approx(wait * 1e9, abs=NEAR_NS + 0.01 * wait * 1e9)
            assert row["network_ns"] == pytest.approx(network, abs=NEAR_NS)
        assert rows[0]["pause_ns"] is None
        pauses = [row["pause_ns"] for row in rows[1:]]
        assert statistics.median(pauses) == pytest.approx(PAUSE * 1e9, abs=NEAR_NS + 0.01 * PAUSE * 1e9)
