# SPDX-License-Identifier: Apache-2.0
"""Wi-Fi stations that join, are refused or removed: an example of each cause, and its rivals."""

from __future__ import annotations

from collections.abc import Callable

from scapy.all import Dot11, Dot11AssoResp, Dot11Auth, Dot11Beacon, Dot11Deauth, Packet, RadioTap

from causes_broken import of_timed
from crafted import Timed
from radio_wire import ACCESS_POINT, STATION

ALL, OTHER_POINT = "ff:ff:ff:ff:ff:ff", "02:aa:aa:aa:aa:02"
SUBTYPES = {Dot11AssoResp: 1, Dot11Beacon: 8, Dot11Auth: 11, Dot11Deauth: 12}


def frame(at: float, body: Packet, target: str = STATION, source: str = ACCESS_POINT) -> tuple[float, Packet]:
    """A management frame."""
    kind = SUBTYPES[type(body)]
    return at, RadioTap() / Dot11(type=0, subtype=kind, addr1=target, addr2=source, addr3=ACCESS_POINT) / body


def joins(*statuses: int) -> Timed:
    """Answers of the access point to associations, every 5 s, among its beacons."""
    timed = [frame(0.1 * n, Dot11Beacon(), ALL) for n in range(20)]
    for n, status in enumerate(statuses):
        timed.append(frame(2.0 + 5.0 * n, Dot11Auth(algo=0, seqnum=2)))
        timed.append(frame(2.01 + 5.0 * n, Dot11AssoResp(status=status)))
    return timed


def joins_elsewhere(status: int) -> Timed:
    """A station that one access point refuses and another admits."""
    timed = [*joins(status), *((at + 10.0, packet.copy()) for at, packet in joins(0))]
    for at, packet in timed:
        if at >= 10.0:
            packet[Dot11].addr2 = packet[Dot11].addr3 = OTHER_POINT
    return timed


def commits(status: int) -> Timed:
    """Answers to the first message of SAE."""
    return [frame(2.0 + n, Dot11Auth(algo=3, seqnum=1, status=status)) for n in range(3)]


def removals(reason: int, count: int = 3, target: str = STATION, gap: float = 8.0) -> Timed:
    """Associations, and the access point that deauthenticates."""
    return [*joins(0), *(frame(3.0 + gap * n, Dot11Deauth(reason=reason), target) for n in range(count))]


def removed_once(reason: int) -> Timed:
    """A station that is removed and joins again."""
    return [*removals(reason, 1), *((at + 10.0, packet) for at, packet in joins(0))]


def departure() -> Timed:
    return [*joins(0), frame(9.0, Dot11Deauth(reason=3), ACCESS_POINT, STATION)]


EXAMPLES: dict[str, Callable] = {
    "wlan-refused": of_timed(lambda: joins(17, 17, 17)),
    "wlan-removed": of_timed(lambda: removals(15)),
}
