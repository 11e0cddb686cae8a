# SPDX-License-Identifier: Apache-2.0
"""Active queue management with a TCP transfer of the kernel: delays, drops and ECN marks."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from lab_bench import NEEDED, frames, truth_rows
from scenario_wire import checksum
from traffic_ends import undisturbed
from wiretale.traffic.lab.capture import captures
from wiretale.traffic.lab.hosts import ADDRESSES
from wiretale.traffic.lab.lifecycle import lab_for_run
from wiretale.traffic.lab.link import link_summary, write_truth
from wiretale.traffic.lab.profile import make_profile

pytestmark = [pytest.mark.xdist_group("live"), NEEDED]
ETHERNET = 14
BYTES = 5_000_000
TRANSFER = f"""
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[2] else socket.AF_INET
if sys.argv[1] == "serve":
    with socket.create_server((sys.argv[2], 5006), family=family) as listening:
        print("ready", flush=True)
        peer, _ = listening.accept()
        while peer.recv(65536):
            pass
        peer.close()
else:
    with socket.create_connection((sys.argv[2], 5006), timeout=30) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
        peer.sendall(bytes({BYTES}))
        peer.shutdown(socket.SHUT_WR)
        peer.recv(1)
"""


def transfer(folder: Path, queue: str, family: int = 0) -> list[dict[str, Any]]:
    """5 MB by TCP over 20 Mbit/s and a round trip of 20 ms; rows of the data."""
    folder.mkdir()
    settings = (
        f'[both]\ndelay = "10ms"\n[forward]\nrate = "20Mbit"\nqueue = 500\n{queue}\n[sysctl]\n"net.ipv4.tcp_ecn" = 1\n'
    )
    address = ADDRESSES["receiver"][family]
    profile = make_profile("trial", settings, "trial", folder)
    with lab_for_run(profile, folder) as lab, captures(lab, folder):
        words = [sys.executable, "-c", TRANSFER]
        with subprocess.Popen(
            lab.inside("receiver", *words, "serve", address), stdout=subprocess.PIPE, text=True
        ) as server:
            try:
                assert server.stdout and server.stdout.readline() == "ready\n"
                assert not subprocess.run(lab.inside("sender", *words, "send", address), timeout=120).returncode
            finally:
                server.kill()
    write_truth(folder, folder / "truth.parquet")
    return [row for row in truth_rows(folder / "truth.parquet") if row["payload_bytes"]]


def standing_ms(rows: list[dict[str, Any]]) -> float:
    """Median delay of the second half in the queue."""
    waits = [row["due_ns"] - row["in_ns"] - 10_000_000 for row in rows if row["due_ns"]]
    return median(waits[len(waits) // 2 :]) / 1e6


@pytest.mark.alone
def test_codel_and_pie_keep_a_queue_short_that_tail_drop_fills(tmp_path: Path) -> None:
    tries = itertools.count()

    def check() -> None:
        number = next(tries)
        full = standing_ms(transfer(tmp_path / f"tail{number}", ""))
        short = {
            name: standing_ms(transfer(tmp_path / f"{name}{number}", f'discipline = "{name}"'))
            for name in ("codel", "pie")
        }
        assert full > 60  # 500 packets take 300 ms
        assert short["codel"] < 15 and short["pie"] < 30, (full, short)

    undisturbed(check, 6)


def ecn_of(frame: bytes) -> int:
    ip = frame[ETHERNET:]
    return ip[1] & 3 if ip[0] >> 4 == 4 else ip[1] >> 4 & 3


def marked_frames(folder: Path) -> list[bytes]:
    """Frames of data with CE."""
    return [frame for frame in frames(folder) if len(frame) > 200 and ecn_of(frame) == 3]


@pytest.mark.parametrize("family", [0, 1])
def test_with_ecn_packets_are_marked_and_none_is_dropped(tmp_path: Path, family: int) -> None:
    if family and not Path("/proc/sys/net/ipv6").exists():
        pytest.skip("this kernel has no IPv6")
    folder = tmp_path / "run"
    rows = transfer(folder, 'discipline = "codel"\necn = true', family)
    assert {row["fate"] for row in rows} == {"delivered"}
    assert {row["marked"] for row in rows} == {None, "codel"}
    marked = sum(row["marked"] is not None for row in rows)
    assert marked > 3
    assert link_summary(folder)["directions"][0]["marked"] == marked
    assert not marked_frames(folder / "before")
    frames = marked_frames(folder / "after")
    assert len(frames) == marked
    assert family or not any(checksum(frame[ETHERNET : ETHERNET + 20]) for frame in frames)


def test_a_queue_that_cannot_mark_is_refused() -> None:
    from wiretale.traffic.program import find_program

    command = [find_program("wiretale-link"), "one", "two", "--forward", "ecn=yes rate=1Mbit"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "expected discipline=red, codel, fq_codel or pie" in done.stderr
