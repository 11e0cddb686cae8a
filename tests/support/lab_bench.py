# SPDX-License-Identifier: Apache-2.0
"""Parts that tests of the lab share: programs, packets to send, and their rows in the truth and in captures."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import needs
from wiretale.traffic.lab.capture import captures
from wiretale.traffic.lab.lifecycle import lab_for_run
from wiretale.traffic.lab.link import link_summary, write_truth
from wiretale.traffic.lab.profile import make_profile
from wiretale.traffic.lab.state import HOSTS, Lab
from wiretale.traffic.program import program_path

# Sends blocks of `size` bytes, `count` of them, one each `gap` seconds, to the receiver.
SENDER = """
import socket, struct, sys, time
size, count, gap = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for k in range(count):
    head = struct.pack("!IIHHIQQ", 0x57544231, 77, 0, 0, size, k, time.time_ns())
    sock.sendto(head + bytes(size - 32), ("10.99.0.2", 5005))
    if gap:
        time.sleep(gap)
"""


COMMAND = (sys.executable, "-m", "wiretale", "lab")
NEEDS_TRAFFIC = pytest.mark.skipif(not program_path("wiretale-traffic"), reason="wiretale-traffic is not installed")
NEEDED = needs.marked(needs.programs("ip", "ethtool", "tcpdump"), needs.network_namespaces())


def wiretale_lab(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, as a user runs it."""
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=120)


@contextmanager
def lab_of(profile: str, name: str, folder: Path) -> Iterator[Lab]:
    """A lab of a profile in a text, with its state in the folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WIRETALE_STATE", str(folder / "labs"))
        with lab_for_run(make_profile(name, profile, name), folder) as lab:
            yield lab


def hosts_of(name: str) -> list[str]:
    """Hosts of a lab that exist."""
    return [host for host in HOSTS if Path("/run/netns", Lab(name, "").namespace(host)).exists()]


def truth_rows(path: Path, where: str = "direction = 0") -> list[dict[str, Any]]:
    """Rows of the truth, in the order of their index."""
    import duckdb

    with duckdb.connect() as connection:
        result = connection.execute(f"SELECT * FROM read_parquet(?) WHERE {where} ORDER BY index", [str(path)])
        names = [column[0] for column in result.description]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def frames(folder: Path) -> list[bytes]:
    """Frames of the captures in a folder, as far as they were captured, in order."""
    from scapy.utils import RawPcapReader

    captured = []
    for path in sorted(path for path in folder.glob("*.pcap*") if path.suffix != ".index"):
        with RawPcapReader(str(path)) as reader:
            captured += [data for data, _ in reader]
    return captured


def block_numbers(captured: list[bytes]) -> list[int]:
    """The sequence of each block, in the order of the capture."""
    magic = bytes.fromhex("57544231")
    return [int.from_bytes(data[58:66], "big") for data in captured if data[42:46] == magic]


def last_json(text: str) -> dict[str, Any]:
    """The object on the last line."""
    last = json.loads(text.strip().splitlines()[-1])
    assert isinstance(last, dict)
    return last


class Sent:
    """Packets that were sent through a link, in the truth and in captures."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.truth = truth_rows(folder / "truth.parquet")
        self.before, self.after = frames(folder / "before"), frames(folder / "after")
        self.numbers_before, self.numbers_after = block_numbers(self.before), block_numbers(self.after)
        self.summary = link_summary(folder)


def send_through(
    folder: Path, forward: str, *, size: int = 200, count: int = 100, gap: float = 0.0005, script: str = SENDER
) -> Sent:
    """Sends blocks through a link with those settings; `folder` has the captures and the truth then."""
    text = "[forward]\n" + "\n".join(
        f'{name} = "{value}"' for name, value in (s.split("=", 1) for s in forward.split())
    )
    profile = make_profile("trial", text, "trial", folder)
    with lab_for_run(profile, folder) as lab, captures(lab, folder):
        command = lab.inside("sender", sys.executable, "-c", script, str(size), str(count), str(gap))
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert not done.returncode, done.stderr
    write_truth(folder, folder / "truth.parquet")
    return Sent(folder)
