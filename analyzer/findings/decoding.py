# SPDX-License-Identifier: Apache-2.0
"""Rules about packets that were not decoded, or not to their end: what the other results lack because of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from wiretale.analyzer.findings.capture import (
    capture_finding,
    count_match,
    first_at,
    first_of,
    interfaces_with,
)
from wiretale.analyzer.findings.hidden import DOUBTFUL_SHARE
from wiretale.analyzer.findings.model import Match, Matches
from wiretale.analyzer.findings.transfers import Transfers
from wiretale.analyzer.units import plural, show_share

if TYPE_CHECKING:
    from wiretale.analyzer.rows import DecodeStopRow

CHAPTER = "Decoding"
UNDECODED_SHOWN = 5  # protocols
#: Reasons of decode_stops without a protocol for packets that are not decoded, in words
NOT_UNDERSTOOD = {
    "wlan-not-data": ("WLAN management or control frame", "WLAN management or control frames"),
    "wlan-protected": ("encrypted WLAN frame", "encrypted WLAN frames"),
    "fcs-bad": ("WLAN frame that arrived damaged (FCS)", "WLAN frames that arrived damaged (FCS)"),
    "wlan-no-data": ("WLAN frame without data", "WLAN frames without data"),
    "ppp-protocol": ("PPP frame of another protocol", "PPP frames of other protocols"),
    "link-fragment": ("later fragment of a frame", "later fragments of frames"),
    "too-deep": ("packet in too many encapsulations", "packets in too many encapsulations"),
    "encrypted": ("encrypted packet", "encrypted packets"),
}
#: Names of the headers at which decoding stops (decode_stops.protocol)
UNDECODED_NAMES = {
    name: f"{name} ({meaning})"
    for name, meaning in {
        "EtherType 0x6558": "transparent Ethernet bridging",
        "EtherType 0x876b": "TCP/IP compression",
        "EtherType 0x880b": "PPP",
        "EtherType 0x8846": "multicast channel allocation",
        "EtherType 0x8847": "MPLS",
        "EtherType 0x8864": "PPPoE",
        "EtherType 0x8870": "jumbo frames",
        "EtherType 0x88b5": "experimental",
        "EtherType 0x88b6": "experimental",
        "EtherType 0x88e5": "MACsec",
        "EtherType 0x88e6": "PBB",
        "EtherType 0x88e7": "PBB",
        "EtherType 0x890d": "fast roaming",
        "EtherType 0x8903": "FabricPath",
        "EtherType 0x8909": "Cisco MetaData, SGT",
        "EtherType 0x8926": "VN-tag",
        "EtherType 0x892f": "HSR",
        "EtherType 0x893f": "E-tag",
        "EtherType 0x894f": "NSH",
        "EtherType 0x22f3": "TRILL",
        "EtherType 0xd28b": "Arista timestamp",
        "PPP protocol 0x002d": "compressed TCP/IP headers",
        "PPP protocol 0x002f": "uncompressed TCP/IP headers",
        "PPP protocol 0x0031": "bridging",
        "PPP protocol 0x003d": "multilink",
        "PPP protocol 0x0053": "encrypted",
        "PPP protocol 0x00fd": "compressed",
        "IP protocol 55": "minimal encapsulation",
        "IP protocol 98": "encapsulation header",
        "IP protocol 108": "IPComp",
        "IP protocol 115": "L2TP",
        "TCP port 7471": "STT",
        "UDP port 1701": "L2TP",
        "UDP port 2152": "GTP-U",
        "UDP port 2268": "AMT",
        "UDP port 3544": "Teredo",
        "UDP port 4341": "LISP",
        "UDP port 4789": "VXLAN",
        "UDP port 4790": "VXLAN-GPE",
        "UDP port 5072": "AYIYA",
        "UDP port 5247": "CAPWAP",
        "UDP port 6080": "GUE",
        "UDP port 6081": "Geneve",
        "UDP port 6635": "MPLS",
        "UDP port 8472": "VXLAN",
        "UDP port 37008": "TZSP",
    }.items()
}


@capture_finding(
    code="headers-cut",
    title="Headers truncated by the snap length",
    unit="packets",
    computed="The IP, transport or tunnel header of these packets exceeds the snap length.",
    unknown="The content of those packets: payload lengths, flags and options, and so the verdicts of their flows.",
    weakens="All verdicts of those flows; their columns are null if a header was not read.",
    sentence="The snap length truncated the headers of {count:packet}[: TCP options, flags or lengths of "
    "{count:~it|them} are unknown].",
    advice="Capture at least 128 bytes per packet (-s 128), more inside tunnels.",
)
def headers_cut(transfers: Transfers) -> Matches:
    count = transfers.trace.interfaces.total("cut_headers")
    return count_match(count, cost=float(count), packets=count, **first_of(transfers, "cut_headers_frame"))


@capture_finding(
    code="lengths-cut",
    title="Records shorter than their packets",
    severity="info",
    unit="packets",
    computed="The IP or PPPoE length of these packets exceeds the length on the wire in their records "
    "(interfaces.lengths_cut). wiretale uses the length in the header.",
    unknown="Whether a tool rewrote the file, a mirror port cut the packets, or the length in the header is wrong.",
    weakens="The payload of those packets, which is in the file only up to the end of the record.",
    sentence="{count:packet is|packets are} longer than {count:~its record says|their records say}[ ({share})][: "
    "probably a tool or a mirror port cut {count:~it|them} and recorded the shorter length][. wiretale uses the length in "
    "the header].",
    advice="Truncate packets with a tool that keeps their original length (editcap -s, tcpdump -s).",
)
def lengths_cut(transfers: Transfers) -> Matches:
    for row in interfaces_with(transfers, "lengths_cut"):
        yield Match(
            count=row["lengths_cut"],
            share=show_share(row["lengths_cut"], row["packets"]),
            cost=float(row["lengths_cut"]),
            packets=row["lengths_cut"],
            **{
                **first_at(transfers, row, "length_cut_frame"),
                "filter": "ip.len > frame.len || ipv6.plen > frame.len",
            },
        )


@capture_finding(
    code="malformed",
    title="Malformed packets",
    computed="Lengths or versions in the headers contradict each other; by reason (decode_stops).",
    unknown="Packets with sound headers that were damaged: see damaged-packets.",
    weakens="The flows to which those packets would belong.",
    sentence="{count:packet has|packets have} a malformed header[ ({reasons})].",
    advice="Inspect them for corruption on the path, a broken sender or an attack.",
)
def malformed(transfers: Transfers) -> Matches:
    for row in interfaces_with(transfers, "malformed"):
        count, first = row["malformed"], first_at(transfers, row, "malformed_frame")
        stops = [stop for stop in stops_of(transfers, row["capture"]) if stop["outcome"] == "malformed"]
        reasons = ", ".join(f"{reason}={packets}" for reason, packets in packets_by_reason(stops))
        yield Match(count=count, reasons=reasons, packets=count, **first)


def stops_of(transfers: Transfers, capture: int) -> list[DecodeStopRow]:
    """Returns the rows of decode_stops of an interface."""
    return [row for row in transfers.trace.decode_stops if row["capture"] == capture]


def packets_by_reason(stops: Iterable[DecodeStopRow]) -> list[tuple[str, int]]:
    """Returns the reasons with their packets, the most frequent first."""
    counts: Counter[str] = Counter()
    for row in stops:
        counts[row["reason"] or ""] += row["packets"]
    return counts.most_common()


def undecoded_counts(transfers: Transfers) -> list[tuple[str, int]]:
    """Returns the protocols of decode_stops with their packets, the most frequent first."""
    link_types = {
        f"link type {row['link_type']}": f"link type {row['link_type']} ({row['link_type_name']})"
        for row in transfers.trace.interfaces
        if row["link_type_name"]
    }
    counts: Counter[str] = Counter()
    for row in transfers.trace.decode_stops:
        if name := row["protocol"]:
            counts[UNDECODED_NAMES.get(name) or link_types.get(name, name)] += row["packets"]
    return sorted(counts.items(), key=lambda item: (item[0] == "others", -item[1]))


@capture_finding(
    code="undecoded",
    title="Protocols that are not decoded",
    severity="warning; info up to 1% of the packets",
    unit="packets",
    computed="Packets of link types, EtherTypes, PPP and IP protocols that may carry IP and that wiretale does not decode "
    "(decode_stops.protocol). So are datagrams to the UDP port of an encapsulation that contain an IP header. Protocols that "
    "never carry IP, such as ARP and LLDP, do not count. Above 1% this finding comes first.",
    unknown="The flows within those packets.",
    weakens="Everything: the other direction of a flow, its losses or all of it may be within those packets. The "
    "findings one-way, capture-missed, syn-unanswered, half-open and keep-alive-unanswered are left out above 1%, and scans "
    "of hosts that refused no connection.",
    sentence="wiretale does not decode {count:packet}[ ({share})]: {first}[{further}][. IP packets within are missing from "
    "all other results].",
    advice="Capture where this header is absent, remove it from the file with `editcap -C OFFSET:LENGTH`, or open the "
    "file in Wireshark.",
)
def undecoded(transfers: Transfers) -> Matches:
    interfaces = transfers.trace.interfaces
    count, packets = interfaces.total("undecoded_packets"), interfaces.total("packets")
    if count:
        named = undecoded_counts(transfers)
        names = [f"{name}: {packets_of:,}" for name, packets_of in named[:UNDECODED_SHOWN]]
        yield Match(
            "warning" if count > DOUBTFUL_SHARE * packets else "info",
            count=count,
            share=show_share(count, packets),
            first=names[0],
            further="".join(f"; {name}" for name in names[1:])
            + ("; and others" if len(named) > UNDECODED_SHOWN else ""),
            cost=float(count),
            packets=count,
            **first_of(transfers, "undecoded_frame"),
        )


@capture_finding(
    code="not-understood",
    title="Packets of an unsupported format",
    severity="info; warning if more than half of the packets",
    computed="The link layer or the IP payload has a format that wiretale does not decode; by reason. Packets in the "
    "finding undecoded do not count.",
    unknown="The content of those packets.",
    weakens="Totals of the capture compared with those of its flows.",
    sentence="{count:packet has|packets have} a format that wiretale does not decode[ ({share}; {reasons})].",
    advice="Open them in Wireshark; wiretale counts them, but does not analyze them.",
)
def not_understood(transfers: Transfers) -> Matches:
    for row in interfaces_with(transfers, "not_understood"):
        stops = [
            stop
            for stop in stops_of(transfers, row["capture"])
            if stop["reason"] in NOT_UNDERSTOOD and not stop["protocol"]
        ]
        if count := sum(stop["packets"] for stop in stops):
            reasons = ", ".join(
                plural(packets, *NOT_UNDERSTOOD[reason]) for reason, packets in packets_by_reason(stops)
            )
            severity = "warning" if count > 0.5 * row["packets"] else "info"
            first = first_at(transfers, row, "not_understood_frame")
            share = show_share(count, row["packets"])
            yield Match(severity, count=count, share=share, reasons=reasons, packets=count, **first)
