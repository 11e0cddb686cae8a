# SPDX-License-Identifier: Apache-2.0
"""Captures whose truth is more than the counts of one conversation: packets, and what must be said of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from scapy.all import IP, UDP, Ether, IPv6, Packet, Raw

import wiretale
from talk import START, WRITERS, Talk, in_vxlan

Verify = Callable[[wiretale.Trace], None]
VXLAN_BYTES = 54  # what in_vxlan() puts before a packet


@dataclass
class Scene:
    """`keep`: bytes of each packet that the capture holds, None for all."""

    packets: Sequence[Packet]
    verify: Verify
    keep: int | None = None


Build = Callable[[int], Scene]
Registry = dict[str, tuple[Build, tuple[int, ...]]]


def register(scenes: Registry, number: str, *versions: int) -> Callable[[Build], Build]:
    """Names a scene; it is built for these versions of IP."""

    def take(build: Build) -> Build:
        scenes[f"{number} {build.__name__}"] = (build, versions or (4, 6))
        return build

    return take


def cut(packet: Packet, keep: int) -> Packet:
    """As a snap length leaves it."""
    whole = bytes(packet)
    short = Ether(whole[:14]) / Raw(whole[14:keep])
    short.time, short.wirelen = packet.time, len(whole)
    return short


def play(scene: Scene, writer: str, folder: Path) -> None:
    """Writes the scene in one wrapping and verifies it."""
    packets, keep, write = list(scene.packets), scene.keep, WRITERS[writer]
    if keep is not None:
        if writer == "vxlan":
            packets, keep, write = [in_vxlan(packet) for packet in packets], keep + VXLAN_BYTES, WRITERS["pcap"]
        packets = [cut(packet, keep) for packet in packets]
    scene.verify(wiretale.analyze(*write(packets, folder)))


def timed(ip_packets: Iterable[Packet], first_ms: float = 0.0, gap_ms: float = 1.0) -> list[Packet]:
    """IP packets as Ethernet frames, one after another."""
    frames = []
    for k, packet in enumerate(ip_packets):
        frame = Ether(bytes(Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / packet))
        frame.time = START + (first_ms + k * gap_ms) / 1000
        frames.append(frame)
    return frames


def datagrams(version: int, payloads: Iterable[tuple[float, bytes]]) -> list[Packet]:
    """One UDP flow; times in ms."""
    frames = []
    for ms, payload in payloads:
        ip = IP(src="10.0.0.1", dst="10.0.0.2") if version == 4 else IPv6(src="fd00::1", dst="fd00::2")
        frames += timed([ip / UDP(sport=4000, dport=4001) / Raw(payload)], ms)
    return frames


def sent_by(talk: Talk, side: int) -> list[Packet]:
    """What one end sent, in order."""
    return [packet for packet in talk.in_order() if packet["TCP"].sport == (40000, 80)[side]]


def rows(trace: wiretale.Trace, *names: str) -> list[tuple[Any, ...]]:
    """Those columns of both directions of the first flow."""
    return [tuple(row[name] for name in names) for row in trace.directions.rows(0, 2)]


def says(*wanted: tuple[Any, ...], names: str) -> Verify:
    """Verifies columns of the directions of the first flow."""
    return partial(_says, wanted, names.split())


def _says(wanted: tuple[tuple[Any, ...], ...], names: list[str], trace: wiretale.Trace) -> None:
    assert rows(trace, *names)[: len(wanted)] == list(wanted), trace.events.rows()
