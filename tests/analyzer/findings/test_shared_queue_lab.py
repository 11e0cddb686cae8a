# SPDX-License-Identifier: Apache-2.0
"""Real transfers through two emulated links, whose truth counts the drops: each queue is one finding with its flows."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import needs
import wiretale
from lab_bench import NEEDED
from placed import placed
from processes import output, wait_until
from traffic_ends import undisturbed
from wiretale.traffic.lab.capture import captures
from wiretale.traffic.lab.lifecycle import lab_for_run
from wiretale.traffic.lab.link import link_summary
from wiretale.traffic.lab.profile import make_profile

pytestmark = [pytest.mark.xdist_group("live"), NEEDED]

Row = dict[str, Any]
SENDER, RECEIVER, PORT, SECONDS = "10.99.0.1", "10.99.0.2", "41235", "5"
FULL = 1538 / 1514  # wire bytes of a full frame, with preamble, FCS and gap, over those that the link counts
QUEUES = {  # source ports of the flows: Mbit/s, kB of the queue
    frozenset((50001, 50002, 50003)): (20, 30),
    frozenset((51001, 51002)): (8, 20),
}
CLIENT = """
import socket, sys, time
from concurrent.futures import ThreadPoolExecutor
def send(number, port):
    time.sleep(0.3 * number)
    to = socket.socket()
    to.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
    to.bind((sys.argv[1], port))
    to.connect((sys.argv[2], int(sys.argv[3])))
    end = time.monotonic() + float(sys.argv[4])
    while time.monotonic() < end:
        to.sendall(bytes(16384))
    to.close()
with ThreadPoolExecutor(8) as pool:
    ports = sys.argv[5:]
    list(pool.map(send, range(len(ports)), map(int, ports)))
"""
SERVER = """
import socket, sys
from concurrent.futures import ThreadPoolExecutor
def take(one):
    while one.recv(65536):
        pass
listener = socket.create_server(("0.0.0.0", int(sys.argv[1])))
with ThreadPoolExecutor(8) as pool:
    for _ in range(int(sys.argv[2])):
        pool.submit(take, listener.accept()[0])
"""


def transfer(folder: Path, ports: frozenset[int], rate: int, room: int) -> tuple[Path, int]:
    """Sends over a link with 3 ms of delay each way; returns the capture before its queue, and the packets it dropped."""
    folder.mkdir()
    text = f'[forward]\nrate = "{rate}Mbit"\nqueue = "{room}KB"\ndelay = "3ms"\n[reverse]\ndelay = "3ms"\n'
    server, client = (
        (SERVER, PORT, str(len(ports))),
        (CLIENT, SENDER, RECEIVER, PORT, SECONDS, *map(str, sorted(ports))),
    )
    with lab_for_run(make_profile("trial", text, "trial", folder), folder) as lab, captures(lab, folder):
        listening = subprocess.Popen(lab.inside("receiver", sys.executable, "-S", "-c", *server))
        try:
            sockets = lab.inside("receiver", "cat", "/proc/net/tcp")
            wait_until(lambda: f":{int(PORT):04X} 00000000:0000" in output(*sockets), "the server listens")
            done = subprocess.run(
                lab.inside("sender", sys.executable, "-S", "-c", *client), capture_output=True, text=True, timeout=120
            )
            assert not done.returncode, done.stderr
            listening.wait(timeout=60)
        finally:
            listening.kill()
            listening.wait(timeout=60)
    (capture,) = (folder / "before").glob("[!.]*.pcap*")  # an index is hidden
    (forward,) = (direction for direction in link_summary(folder)["directions"] if direction["from"] == "left")
    return capture, forward["queue"]


def at_one_time(first: Path, second: Path, folder: Path) -> Path:
    """Both captures in one file, the second one shifted to the time of the first."""
    starts = [wiretale.analyze(capture).interfaces.rows()[0]["first_ns"] for capture in (first, second)]
    shifted, merged = folder / "shifted.pcapng", folder / "merged.pcapng"
    shift = f"{(starts[0] - starts[1]) / 1e9:.6f}"
    subprocess.run(["editcap", "-t", shift, str(second), str(shifted)], check=True, timeout=60)
    subprocess.run(["mergecap", "-w", str(merged), str(first), str(shifted)], check=True, timeout=60)
    return merged


def figure(pattern: str, row: Row) -> float:
    matched = re.search(pattern, row["sentence"])
    assert matched, row["sentence"]
    return float(matched[1].replace(",", ""))


@pytest.mark.alone
def test_each_queue_is_one_finding_with_its_flows_rate_and_delay(tmp_path: Path) -> None:
    needs.skip_without(needs.programs("editcap", "mergecap"))

    def check() -> None:
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        links = {ports: transfer(folder / str(rate), ports, rate, room) for ports, (rate, room) in QUEUES.items()}
        merged = at_one_time(*(capture for capture, _ in links.values()), folder)
        rows = [row for row in placed(wiretale.analyze(merged)) if row["code"] == "shared-queue"]
        by_ports = {frozenset(map(int, re.findall(rf"{SENDER}:(\d+)", row["evidence"]))): row for row in rows}
        assert set(by_ports) == set(QUEUES), [row["sentence"] for row in rows]
        for ports, (rate, room) in QUEUES.items():
            row, dropped = by_ports[ports], links[ports][1]
            assert "after the capture point" in row["sentence"] and "Tail drop" in row["sentence"]
            assert figure(r": ([\d,]+) segments", row) == pytest.approx(dropped, rel=0.02, abs=2)
            assert figure(r"They pass ([\d.]+) Mbit/s", row) == pytest.approx(rate * FULL, rel=0.06)
            assert figure(r"delays by ([\d.]+) ms", row) == pytest.approx(room * 8 / rate, rel=0.2)

    undisturbed(check, tries=3)
