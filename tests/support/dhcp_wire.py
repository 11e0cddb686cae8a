# SPDX-License-Identifier: Apache-2.0
"""DHCP messages of one client and its server, or through a relay."""

from __future__ import annotations

from scapy.all import BOOTP, DHCP, IP, UDP, Ether, Packet, mac2str

LAPTOP, DHCP_SERVER, LEASE = "02:00:00:00:00:0a", "10.1.0.1", "10.1.4.7"


def message(
    at: float, kind: str, xid: int = 1, mac: str = LAPTOP, relay: str = "0.0.0.0", name: str = "laptop"
) -> tuple[float, Packet]:
    """A message of the client (discover, request, inform), or of the server (offer, ack, nak)."""
    reply = kind in ("offer", "ack", "nak")
    ends = (DHCP_SERVER, "255.255.255.255") if reply else ("0.0.0.0", "255.255.255.255")
    ports = (67, 68) if reply else (68, 67)
    if relay != "0.0.0.0":
        ends, ports = ((DHCP_SERVER, relay) if reply else (relay, DHCP_SERVER)), (67, 67)
    options = [("message-type", kind), *([("server_id", DHCP_SERVER)] if reply else [("hostname", name)]), "end"]
    lease = LEASE if reply and kind != "nak" else "0.0.0.0"
    boot = BOOTP(op=1 + reply, xid=xid, chaddr=mac2str(mac), giaddr=relay, yiaddr=lease)
    frame = Ether(src="02:00:00:00:00:01" if reply else mac, dst="ff:ff:ff:ff:ff:ff")
    return at, frame / IP(src=ends[0], dst=ends[1]) / UDP(sport=ports[0], dport=ports[1]) / boot / DHCP(options=options)


def passed_on(at: float, kind: str, xid: int = 1) -> tuple[float, Packet]:
    """A reply that a relay sends to its client: its address stays in it (RFC 1542 section 4.1.2)."""
    _, frame = message(at, kind, xid, relay="10.1.4.1")
    frame[IP].src, frame[IP].dst, frame[UDP].dport = "10.1.4.1", LEASE, 68
    return at, frame


def lease(at: float, xid: int = 1, mac: str = LAPTOP, name: str = "laptop") -> list[tuple[float, Packet]]:
    """All four messages."""
    kinds = ("discover", "offer", "request", "ack")
    return [message(at + n / 100, kind, xid, mac, name=name) for n, kind in enumerate(kinds)]
