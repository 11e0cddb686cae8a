# SPDX-License-Identifier: Apache-2.0
"""Frames of IEEE 802.11 as a monitor sees them."""

from __future__ import annotations

from scapy.all import LLC, SNAP, Dot11, Packet, RadioTap

STATION, ACCESS_POINT, HOST = "02:bb:bb:bb:bb:02", "02:aa:aa:aa:aa:01", "02:cc:cc:cc:cc:03"
RETRY, TO_DS, FROM_DS = 8, 1, 2


def on_radio(packet: Packet, number: int, flags: int) -> Packet:
    """A frame of the station to its access point, or of the access point."""
    ends = (ACCESS_POINT, STATION, HOST) if flags & TO_DS else (STATION, ACCESS_POINT, HOST)
    header = Dot11(type=2, subtype=0, FCfield=flags, addr1=ends[0], addr2=ends[1], addr3=ends[2], SC=number << 4)
    return RadioTap() / header / LLC(dsap=0xAA, ssap=0xAA, ctrl=3) / SNAP(code=0x800) / packet
