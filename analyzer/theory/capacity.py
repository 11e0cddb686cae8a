# SPDX-License-Identifier: Apache-2.0
"""The maximum of a link: frames, headers, fragments and rates by arithmetic alone (docs/theory.md)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt

from wiretale.analyzer.errors import UsageError
from wiretale.analyzer.theory import wlan
from wiretale.analyzer.units import one_of, plural, show_rate

IP_HEADER = {4: 20, 6: 40}
FRAGMENT_HEADER = {4: 0, 6: 8}  # RFC 8200 section 4.5; IPv4 has its fields in the header
FRAGMENT_UNIT = 8  # fragment offsets count in 8 bytes (RFC 791)
TCP_HEADER, UDP_HEADER = 20, 8
TCP_OPTIONS_MOST = 40
TIMESTAMPS = 12  # bytes of the option, padded (RFC 7323)
UDP_MOST = {4: 65535 - 20 - UDP_HEADER, 6: 65535 - UDP_HEADER}  # IPv6 counts no header of its own
MTU_LEAST = {4: 68, 6: 1280}  # RFC 791; RFC 8200 section 5
MTU_MOST = 65535
ETHERNET_HEADER, ETHERNET_FCS, ETHERNET_LEAST = 14, 4, 60  # IEEE 802.3 clause 3; least without FCS
PREAMBLE_AND_GAP = 8 + 12


@dataclass(frozen=True)
class Framing:
    """Bytes that a link adds to an IP packet."""

    header: int  # before it
    trailer: int  # after it
    between: int  # preamble and gap
    least: int  # of header and packet, which are padded to it
    air: wlan.Air | None = None  # of a wireless LAN, whose frames take more time than their bits

    def extra(self) -> int:
        """Returns the bytes added to a packet that needs no padding."""
        return self.header + self.trailer + self.between

    def wire_bytes(self, packet: int) -> int:
        """Returns the bytes that an IP packet takes on the link."""
        return max(self.header + packet, self.least) + self.trailer + self.between

    def seconds(self, packet: int, bps: int) -> Fraction:
        """Returns the time that an IP packet takes on the link."""
        length = self.wire_bytes(packet)
        return self.air.frame_seconds(length, bps) if self.air else Fraction(8 * length) / Fraction(bps)


def wireless(protected: bool) -> Framing:
    """Returns IEEE 802.11 without QoS and encryption."""
    return Framing(wlan.MAC_HEADER + wlan.LLC_SNAP, wlan.FCS, 0, 0, wlan.Air(protected))


def ethernet(more: int) -> Framing:
    """Returns Ethernet with additional header bytes."""
    return Framing(ETHERNET_HEADER + more, ETHERNET_FCS, PREAMBLE_AND_GAP, ETHERNET_LEAST)


FRAMINGS = {
    "ethernet": ethernet(0),
    "vlan": ethernet(4),  # IEEE 802.1Q
    "qinq": ethernet(8),  # IEEE 802.1ad
    "mpls": ethernet(4),  # one label, RFC 3032
    "pppoe": ethernet(8),  # RFC 2516: 6 and 2 of PPP
    "ip": Framing(0, 0, 0, 0),  # IP packets side by side
    "wlan": wireless(protected=False),
    "wlan-protected": wireless(protected=True),  # beside stations of 802.11b
}


@dataclass(frozen=True)
class Link:
    """A link and its protocols."""

    bps: int
    mtu: int = 1500
    framing: str = "ethernet"
    ip: int = 4
    tcp_options: int = 0

    def frame(self) -> Framing:
        """Returns the framing."""
        return FRAMINGS[self.framing]

    def headers(self, protocol: str) -> int:
        """Returns the IP and transport header bytes of an unfragmented packet."""
        return IP_HEADER[self.ip] + (TCP_HEADER + self.tcp_options if protocol == "tcp" else UDP_HEADER)

    def seconds(self, protocol: str, packet: int) -> Fraction:
        """Returns the time of a packet on the link; in a wireless LAN ACKs of TCP, one for two segments, take a share of it."""
        frame = self.frame()
        acks = frame.seconds(self.headers("tcp"), self.bps) / 2 if frame.air and protocol == "tcp" else 0
        return frame.seconds(packet, self.bps) + acks


def check_link(link: Link) -> None:
    """Raises UsageError if the link cannot exist; the MTU must leave room for TCP payload."""
    if link.framing not in FRAMINGS:
        raise UsageError(f"framing {link.framing!r}: expected {one_of(FRAMINGS)}")
    if link.ip not in IP_HEADER:
        raise UsageError(f"IP version {link.ip}: expected 4 or 6")
    if not MTU_LEAST[link.ip] <= link.mtu <= MTU_MOST:
        least = MTU_LEAST[link.ip]
        raise UsageError(f"MTU {link.mtu}: expected {least} to {MTU_MOST} for IPv{link.ip} (IP header included)")
    if link.tcp_options % 4 or not 0 <= link.tcp_options <= TCP_OPTIONS_MOST:
        raise UsageError(f"TCP options of {link.tcp_options} bytes: expected a multiple of 4 from 0 to 40")
    if link.headers("tcp") >= link.mtu:
        raise UsageError(f"MTU {link.mtu}: headers of {link.headers('tcp')} bytes leave no room for TCP payload")
    if link.bps <= 0:
        raise UsageError(f"link rate {link.bps}: expected more than 0 bit/s")
    if link.frame().air and link.bps not in wlan.DSSS_RATES + wlan.OFDM_RATES:
        raise UsageError(
            f"{show_rate(link.bps)} in a wireless LAN: expected 1, 2, 5.5 or 11 Mbit/s (802.11b), or 6, 9, 12, 18, 24, 36, "
            "48 or 54 (802.11a, g)"
        )


@dataclass(frozen=True)
class Maximum:
    """The rates of full frames of one protocol."""

    extra_bytes_per_frame: int  # everything except payload
    payload_per_frame: int
    wire_bytes_per_frame: int
    seconds_per_frame: float  # on the link
    frames_per_second: int  # whole ones
    max_payload_mb_per_s: float  # of whole frames, in 10^6 bytes, rounded to three digits
    max_payload_bps: float  # exact, including the fraction of a frame
    efficiency: float  # of the link's rate


@dataclass(frozen=True)
class BlockMaximum:
    """The rates of blocks of one size, each a datagram or in TCP segments of its own."""

    block_bytes: int
    frames_per_block: int
    fragments_per_block: int  # 0 without fragmentation
    wire_bytes_per_block: int
    max_blocks_per_s: float
    block_payload_mb_per_s: float
    block_payload_bps: float
    block_efficiency: float


@dataclass(frozen=True)
class Stream:
    """The rates of blocks that TCP packs into full segments."""

    frames_per_block: float
    wire_bytes_per_block: float
    max_blocks_per_s: float


def maximum(link: Link, protocol: str) -> Maximum:
    """Returns the rates of full frames. MB/s counts the whole frames that fit into a second, as in published studies."""
    headers, wire = link.headers(protocol), link.frame().wire_bytes(link.mtu)
    payload, seconds = link.mtu - headers, link.seconds(protocol, link.mtu)
    frames = int(1 // seconds)
    return Maximum(
        extra_bytes_per_frame=headers + link.frame().extra(),
        payload_per_frame=payload,
        wire_bytes_per_frame=wire,
        seconds_per_frame=float(seconds),
        frames_per_second=frames,
        max_payload_mb_per_s=round(frames * payload / 1e6, 3),
        max_payload_bps=float(8 * payload / seconds),
        efficiency=float(8 * payload / seconds / Fraction(link.bps)),
    )


Packets = list[tuple[int, int]]  # bytes of an IP packet, count


def fragment_sizes(link: Link, length: int) -> Packets:
    """Returns the IP packets of a datagram of this length (with its transport header): one, or its fragments."""
    header = IP_HEADER[link.ip]
    if header + length <= link.mtu:
        return [(header + length, 1)]
    header += FRAGMENT_HEADER[link.ip]
    room = (link.mtu - header) // FRAGMENT_UNIT * FRAGMENT_UNIT  # of each fragment but the last, which may fill the MTU
    before_last = -((link.mtu - header - length) // room)
    return [(header + room, before_last), (header + length - before_last * room, 1)]


def datagram_most(link: Link) -> int:
    """Returns the largest UDP payload that needs no fragments."""
    return link.mtu - link.headers("udp")


def segment_sizes(link: Link, block: int) -> Packets:
    """Returns the IP packets of a block in TCP segments of its own."""
    header = link.headers("tcp")
    full, remainder = divmod(block, link.mtu - header)
    return [(size, count) for size, count in ((link.mtu, full), (header + remainder, bool(remainder))) if count]


def check_block(link: Link, protocol: str, block: int) -> None:
    """Raises UsageError if the block, which must be 1 byte or more, does not fit into a datagram."""
    if block < 1:
        raise UsageError(f"block of {plural(block, 'byte')}: expected 1 or more")
    if protocol == "udp" and block > UDP_MOST[link.ip]:
        raise UsageError(
            f"block of {block} bytes: expected at most {UDP_MOST[link.ip]}, the largest datagram over IPv{link.ip}"
        )


def block_maximum(link: Link, protocol: str, block: int) -> BlockMaximum:
    """Returns the rates of blocks of one size, each a datagram (UDP) or in segments of its own (TCP).

    Raises UsageError if the block is too large.
    """
    check_block(link, protocol, block)
    udp = protocol == "udp"
    packets = fragment_sizes(link, block + UDP_HEADER) if udp else segment_sizes(link, block)
    frames = sum(count for _, count in packets)
    wire = sum(link.frame().wire_bytes(size) * count for size, count in packets)
    blocks = float(1 / sum(link.seconds(protocol, size) * count for size, count in packets))
    return BlockMaximum(
        block_bytes=block,
        frames_per_block=frames,
        fragments_per_block=frames if udp and frames > 1 else 0,
        wire_bytes_per_block=wire,
        max_blocks_per_s=blocks,
        block_payload_mb_per_s=round(blocks * block / 1e6, 3),
        block_payload_bps=blocks * block * 8,
        block_efficiency=blocks * block * 8 / link.bps,
    )


def stream(link: Link, block: int) -> Stream:
    """Returns the rates of blocks of one size in a TCP stream that never pauses, so that every segment is full."""
    full = maximum(link, "tcp")
    frames = block / full.payload_per_frame
    return Stream(frames, frames * full.wire_bytes_per_frame, 1 / (frames * full.seconds_per_frame))


@dataclass(frozen=True)
class PathBounds:
    """What one TCP connection can carry over a path, by its round trip, window and loss."""

    rtt_seconds: float
    window_bytes: int | None
    loss: float | None  # share of segments
    bytes_in_flight: float  # that fill the link
    window_bps: float | None  # window / round trip
    loss_bps: float | None  # Mathis, Semke, Mahdavi, Ott 1997: MSS / round trip x sqrt(3/2) / sqrt(loss)
    bound_bps: float  # the least of them and of the link
    bound_by: str  # link, window or loss


def path_bounds(link: Link, rtt_seconds: float, window: int | None, loss: float | None) -> PathBounds:
    """Returns the bounds of a path. That of losses is one of Reno with an ACK for each segment; CUBIC and BBR can exceed it."""
    if not rtt_seconds > 0:
        raise UsageError(f"RTT of {rtt_seconds} s: expected more than 0")
    if loss is not None and not 0 < loss < 1:
        raise UsageError(f"loss of {loss}: expected a share between 0 and 1, or a percentage")
    full = maximum(link, "tcp")
    bounds = {"link": full.max_payload_bps}
    if window is not None:
        bounds["window"] = 8 * window / rtt_seconds
    if loss is not None:
        bounds["loss"] = 8 * full.payload_per_frame / rtt_seconds * sqrt(1.5 / loss)
    least = min(bounds, key=lambda name: bounds[name])
    return PathBounds(
        rtt_seconds=rtt_seconds,
        window_bytes=window,
        loss=loss,
        bytes_in_flight=full.max_payload_bps * rtt_seconds / 8,
        window_bps=bounds.get("window"),
        loss_bps=bounds.get("loss"),
        bound_bps=bounds[least],
        bound_by=least,
    )


def with_timestamps(link: Link) -> Maximum | None:
    """Returns the maximum of TCP with timestamps, which most hosts use; None if the options of the link are given."""
    return None if link.tcp_options else maximum(replace(link, tcp_options=TIMESTAMPS), "tcp")
