# SPDX-License-Identifier: Apache-2.0
"""A virtual address that another router takes over, and hosts that learn of it, or not."""

from __future__ import annotations

import struct

from scapy.all import ARP, IP, Ether, Raw

from attempt_wire import Ends
from causes_broken import of_timed
from crafted import Timed, ether

CLIENT, ADDRESS, OLD, NEW = "10.0.0.1", "10.0.0.100", "10.0.0.11", "10.0.0.12"
MOVED = 10.0  # s


def masters(until: float = 60.0, moves: bool = True) -> Timed:
    """An advertisement of VRRP every second, of the new master from the change on."""
    timed: Timed = []
    for second in range(int(until)):
        source = NEW if moves and second >= MOVED else OLD
        body = struct.pack("!BBBBBBH4s8s", 0x21, 51, 100, 1, 0, 1, 0, bytes([10, 0, 0, 100]), bytes(8))
        timed.append((0.3 + second, ether(IP(src=source, dst="224.0.0.18", ttl=255, proto=112) / Raw(body))))
    return timed


def moved(announced: bool = False, reached: bool = True, moves: bool = True, mac: str = "02:00:00:00:00:0c") -> Timed:
    """Connections before the change, and without an answer after it; `reached`: some were answered before."""
    timed = masters(moves=moves)
    for number in range(3):
        ends = Ends(40_000 + number, 80, CLIENT, ADDRESS)
        timed += ends.connects(1.0 + 2 * number) if reached else []
        timed += Ends(41_000 + number, 80, CLIENT, ADDRESS).syns(15.0 + 10 * number)
    if announced:
        claim = ARP(op=1, hwsrc=mac, psrc=ADDRESS, pdst=ADDRESS)
        timed.append((MOVED + 0.4, Ether(src=mac, dst="ff:ff:ff:ff:ff:ff") / claim))
    return timed


EXAMPLES = {"moved-address": of_timed(moved)}
