# SPDX-License-Identifier: Apache-2.0
"""Ids that a sender chose to collide in a hash table cost no more than others."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import needs
from capture_files import write_pcap
from capture_points import udp

PACKETS = 20_000
RATIO_MOST = 3  # it was 6 when the table of encapsulations had no seed, and grew with the packets
PRIME, MASK = 0x100000001B3, 2**64 - 1  # of FNV-1a
KINDS = re.findall(r"^ +PATH_(\w+),", (needs.ROOT / "analyzer/core/decode/headers.h").read_text(), re.MULTILINE)
VXLAN = KINDS.index("VXLAN")


def crafted_ids() -> Iterator[int]:
    """VXLAN ids whose unseeded FNV-1a falls into 1,024 of 131,072 buckets: one long run for linear probing."""
    begun = (0xCBF29CE484222325 ^ VXLAN) * PRIME & MASK
    for number in range(2**24):
        identifier = (begun ^ number) * PRIME & MASK
        if (identifier >> 32 ^ identifier) & 0x1FFFF < 1024:
            yield number


ETHERNET, VTEP = bytes(12) + b"\x08\x00", ("10.0.0.2", 4789)
INNER = ETHERNET + udp(b"x")


def write_capture(path: Path, ids: Iterable[int]) -> Path:
    packets = (ETHERNET + udp(struct.pack("!II", 0x08000000, number << 8) + INNER, target=VTEP) for number in ids)
    return write_pcap(path, (((1_768_478_400 + at // 1000) * 10**9, packet) for at, packet in enumerate(packets)))


def cpu_seconds(path: Path) -> float:
    """The least processor time of three runs of the command."""
    command = [sys.executable, "-m", "wiretale", "analyze", str(path), "--json", "--tables", "interfaces"]
    least = float("inf")
    for _ in range(3):
        before = os.times()
        subprocess.run(command, stdout=subprocess.DEVNULL, timeout=120, check=True)
        after = os.times()
        spent = after.children_user + after.children_system - before.children_user - before.children_system
        least = min(least, spent)
    return least


def test_crafted_encapsulations_cost_as_much_as_others(tmp_path: Path) -> None:
    ids = crafted_ids()
    crafted = write_capture(tmp_path / "crafted.pcap", (next(ids) for _ in range(PACKETS)))
    ordinary = write_capture(tmp_path / "others.pcap", range(PACKETS))
    assert cpu_seconds(crafted) <= RATIO_MOST * cpu_seconds(ordinary)
