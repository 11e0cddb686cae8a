# SPDX-License-Identifier: Apache-2.0
"""Packets that Scapy crafts, in capture files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from scapy.all import Ether, Packet, wrpcap

import wiretale

START = 1_700_000_000


def ether(packet: Packet) -> Packet:
    """In a frame whose addresses Scapy need not ask the network for."""
    return Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / packet


def write_timed(path: Path, timed: Iterable[tuple[float, Packet]], **options: Any) -> Path:
    """A pcap file of packets with their times in seconds, in this order."""
    packets = []
    for seconds, original in timed:
        packet = original.copy()
        packet.time = START + seconds
        packets.append(packet)
    wrpcap(str(path), packets, **options)
    return path


def analyze_timed(folder: Path, timed: Iterable[tuple[float, Packet]], **options: Any) -> wiretale.Trace:
    return wiretale.analyze(write_timed(folder / "crafted.pcap", timed), **options)
