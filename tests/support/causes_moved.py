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


def handed(
    announced: bool = False,
    vain: bool = False,
    between: bool = False,
    served: bool = True,
    stays: bool = False,
    back: bool = False,
) -> Timed:
    """A server whose address another machine takes over at 10 s, of which its client learns at 60 s, when it asks again; `vain`:
    it asks at 30 s, too, and nobody answers; `between`: a connection opens all the same."""
    macs, lan = ("02:00:00:00:00:0b", "02:00:00:00:00:0b" if stays else "02:00:00:00:00:0c"), "ff:ff:ff:ff:ff:ff"
    client = "02:00:00:00:00:01"

    def asks(at: float, mac: str | None) -> Timed:
        request = Ether(src=client, dst=lan) / ARP(op=1, hwsrc=client, psrc=CLIENT, pdst=ADDRESS)
        reply = Ether(src=mac, dst=client) / ARP(op=2, hwsrc=mac, psrc=ADDRESS, hwdst=client, pdst=CLIENT)
        return [(at, request), (at + 0.0004, reply)] if mac else [(at + repeat, request) for repeat in range(3)]

    timed = asks(0.5, macs[0]) + asks(60.0, macs[1]) + (asks(70.0, macs[0]) if back else [])
    for number in range(3):
        timed += Ends(40_000 + number, 80, CLIENT, ADDRESS).connects(1.0 + 2 * number)
        timed += Ends(41_000 + number, 80, CLIENT, ADDRESS).syns(15.0 + 10 * number)
        timed += Ends(42_000 + number, 80, CLIENT, ADDRESS).connects(60.1 + number) if served else []
    timed += asks(30.0, None) if vain else []
    timed += Ends(43_000, 80, CLIENT, ADDRESS).connects(34.0) if between else []
    if announced:
        claim = ARP(op=1, hwsrc=macs[1], psrc=ADDRESS, pdst=ADDRESS)
        timed.append((55.0, Ether(src=macs[1], dst=lan) / claim))
    return sorted(timed, key=lambda each: each[0])


EXAMPLES = {"moved-address": of_timed(moved)}
