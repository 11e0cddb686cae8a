# SPDX-License-Identifier: Apache-2.0
"""Paths whose fault is known: uploads of real kernels over an emulated link, or into a policer of the kernel, on both sides."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import wiretale
from lab_bench import NEEDED, NEEDS_TRAFFIC, lab_of
from wiretale.traffic.lab.capture import captures
from wiretale.traffic.lab.state import Lab

pytestmark = [pytest.mark.xdist_group("live"), pytest.mark.alone, NEEDED, NEEDS_TRAFFIC]

SERVER = """
import socket
listener = socket.create_server(("10.99.0.2", 5001))
print("ready", flush=True)
peer = listener.accept()[0]
while peer.recv(1 << 16):
    pass
"""
CLIENT = """
import socket, sys, time
size, rate = (float(word) for word in sys.argv[1:])
peer = socket.create_connection(("10.99.0.2", 5001))
began, sent = time.monotonic(), 0
while sent < size:
    peer.sendall(bytes(14480))
    sent += 14480
    time.sleep(max(began + sent / rate - time.monotonic(), 0)) if rate else None
peer.shutdown(1)
peer.recv(1)
"""
BOTH = '[both]\nrate = "200Mbit"\ndelay = "15ms"\nqueue = 2000\n'
POLICE = (
    "add table netdev police",
    'add chain netdev police in { type filter hook ingress device "path" priority 0; }',
    "add rule netdev police in limit rate over 1100 kbytes/second burst 15 kbytes drop",
)
#: profile, rules of the receiver's nftables, bytes, bytes/s (0: as fast as it can); cause and words before and behind the link
CASES = {
    "random": (f'{BOTH}[forward]\nloss = "0.5%"\n', (), 8e6, 4e6, ("random-loss", "random-loss"), "were lost"),
    # Behind the link, one run in a few is told as losses in one burst, which they are.
    "outage": (f'{BOTH}[forward]\noutage = "1.5s-2.7s"\n', (), 8e6, 2e6, ("outage", None), "nothing got through for"),
    "stall": (f'{BOTH}[forward]\nstall = "1.5s-2.5s"\n', (), 6e6, 2e6, ("stall", None), "stood still for"),
    "policer": (BOTH, POLICE, 12e6, 0, ("policer", "policer"), "Mbit/s after bursts of"),
}


def upload(lab: Lab, size: float, rate: float) -> None:
    server = lab.inside("receiver", sys.executable, "-c", SERVER)
    with subprocess.Popen(server, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout and process.stdout.readline() == b"ready\n"
            client = lab.inside("sender", sys.executable, "-c", CLIENT, str(size), str(rate))
            subprocess.run(client, check=True, timeout=60)
        finally:
            process.kill()


@pytest.mark.parametrize("kind", CASES)
def test_the_answer_names_what_the_path_did(kind: str, tmp_path: Path) -> None:
    profile, rules, size, rate, expected, words = CASES[kind]
    with lab_of(profile, kind, tmp_path / "lab") as lab:
        for rule in rules:
            subprocess.run(lab.inside("receiver", "nft", rule), check=True)
        with captures(lab, tmp_path):
            upload(lab, size, rate)
    for side, cause in zip(("before", "after"), expected, strict=True):
        (file,) = (tmp_path / side).glob("*.pcap*")
        answer = wiretale.analyze(file).answer
        if cause:
            assert (answer.cause, words in answer.sentence) == (cause, True), (side, answer.sentence)
