# SPDX-License-Identifier: Apache-2.0
"""Decoded packets, against packets crafted by Scapy, and against tshark on hundreds of captures."""

from __future__ import annotations

import csv
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from scapy.all import (
    GRE,
    IP,
    LLC,
    PPP,
    SCTP,
    SNAP,
    TCP,
    UDP,
    VXLAN,
    CookedLinux,
    Dot1AD,
    Dot1Q,
    Dot11,
    Dot11QoS,
    Ether,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
    Loopback,
    Packet,
    PPPoE,
    RadioTap,
    Raw,
    wrpcap,
)
from scapy.contrib.geneve import GENEVE
from scapy.contrib.mpls import MPLS

import needs
import wiretale

ETHERNET = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
V4, V6 = IP(src="10.1.1.1", dst="10.2.2.2"), IPv6(src="fd00::1", dst="fd00::2")
INNER = {4: V4 / UDP(sport=1111, dport=2222) / Raw(b"x" * 40), 6: V6 / UDP(sport=1111, dport=2222) / Raw(b"x" * 40)}
OUTER4, OUTER6 = IP(src="192.0.2.1", dst="192.0.2.2"), IPv6(src="2001:db8::1", dst="2001:db8::2")
WLAN = Dot11(type=2, subtype=0, addr1="02:00:00:00:00:02", addr2="02:00:00:00:00:01", FCfield=1)
QOS = Dot11(type=2, subtype=8, addr1="02:00:00:00:00:02", addr2="02:00:00:00:00:01", FCfield=1) / Dot11QoS()

# name: link type, bytes before the inner IP packet, the path
ENCAPSULATIONS: dict[str, tuple[int, Packet | None, str | None]] = {
    "ethernet": (1, ETHERNET, None),
    "vlan": (1, ETHERNET / Dot1Q(vlan=5), "vlan 5"),
    "qinq": (1, ETHERNET / Dot1AD(vlan=100) / Dot1Q(vlan=5), "vlan 100 / vlan 5"),
    "mpls": (1, ETHERNET / MPLS(label=16, s=0) / MPLS(label=17, s=1), None),
    "gre": (1, ETHERNET / OUTER4 / GRE(), "gre 0"),
    "gre key": (1, ETHERNET / OUTER6 / GRE(key_present=1, key=77), "gre 77"),
    "ip in ip": (1, ETHERNET / OUTER4, "ipip"),
    "ip in ipv6": (1, ETHERNET / OUTER6, "ipip"),
    "vxlan": (1, ETHERNET / OUTER4 / UDP(dport=4789) / VXLAN(flags=8, vni=42) / ETHERNET, "vxlan 42"),
    "vlan in vxlan over ipv6": (
        *(1, ETHERNET / OUTER6 / UDP(dport=4789) / VXLAN(flags=8, vni=42) / ETHERNET / Dot1Q(vlan=3)),
        "vxlan 42 / vlan 3",
    ),
    "geneve": (1, ETHERNET / OUTER4 / UDP(dport=6081) / GENEVE(vni=9) / ETHERNET, "geneve 9"),
    "cooked": (113, CookedLinux(pkttype=0), None),
    "raw": (101, None, None),
    "wlan": (105, WLAN / LLC() / SNAP(), None),
    "wlan with qos and radiotap": (127, RadioTap() / QOS / LLC() / SNAP(), None),
}


def decoded(tmp_path: Path, packet: Packet, link_type: int) -> dict[str, Any]:
    path = tmp_path / "one.pcap"
    wrpcap(str(path), [packet], linktype=link_type)
    trace = wiretale.analyze(path)
    rows = trace.flows.rows()
    assert len(rows) == 1, trace.decode_stops
    return {**rows[0], "payload": trace.directions.rows()[0]["payload_bytes"]}


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("name", ENCAPSULATIONS)
def test_every_encapsulation_leads_to_the_inner_packet(tmp_path: Path, name: str, version: int) -> None:
    link_type, outer, path = ENCAPSULATIONS[name]
    row = decoded(tmp_path, INNER[version] if outer is None else outer / INNER[version], link_type)
    assert (row["source_port"], row["destination_port"], row["payload"]) == (1111, 2222, 40)
    assert (row["ip_version"], row["path"], row["protocol"]) == (version, path, "udp")


@pytest.mark.parametrize(("family", "version"), [(2, 4), (30, 6), (24, 6), (10, 6)])
def test_loopback_shows_the_version_by_the_family(tmp_path: Path, family: int, version: int) -> None:
    assert decoded(tmp_path, Loopback(type=family) / INNER[version], 0)["ip_version"] == version


@pytest.mark.parametrize(("protocol", "version"), [(0x21, 4), (0x57, 6)])
def test_ppp_and_pppoe(tmp_path: Path, protocol: int, version: int) -> None:
    assert decoded(tmp_path, PPP(proto=protocol) / INNER[version], 9)["ip_version"] == version
    session = Ether(type=0x8864) / PPPoE(sessionid=7) / PPP(proto=protocol) / INNER[version]
    assert decoded(tmp_path, session, 1)["path"] == "pppoe 7"


def test_ipv6_extension_headers_are_passed(tmp_path: Path) -> None:
    headers = IPv6ExtHdrHopByHop() / IPv6ExtHdrRouting() / IPv6ExtHdrDestOpt()
    row = decoded(tmp_path, ETHERNET / V6 / headers / TCP(sport=7, dport=8) / Raw(b"x" * 9), 1)
    assert (row["protocol"], row["source_port"], row["payload"]) == ("tcp", 7, 9)


def test_sctp_has_ports(tmp_path: Path) -> None:
    row = decoded(tmp_path, ETHERNET / V4 / SCTP(sport=5, dport=6), 1)
    assert (row["protocol"], row["source_port"], row["destination_port"]) == ("sctp", 5, 6)


def test_encapsulation_without_end_is_bounded_and_counted(tmp_path: Path) -> None:
    packet = ETHERNET
    for _ in range(40):
        packet = packet / Dot1Q(vlan=1)
    path = tmp_path / "deep.pcap"
    wrpcap(str(path), [packet / V4 / UDP()])
    trace = wiretale.analyze(path)
    assert trace.interfaces["not_understood"] == trace.decode_stops["packets"] == [1]
    assert trace.decode_stops["reason"] == ["too-deep"]


def test_padding_is_no_payload(tmp_path: Path) -> None:
    row = decoded(tmp_path, ETHERNET / V4 / TCP(sport=1, dport=2) / Raw(b""), 1)
    padded = decoded(tmp_path, Ether(bytes(ETHERNET / V4 / TCP(sport=1, dport=2)) + b"\0" * 20), 1)
    assert row["payload"] == padded["payload"] == 0


# --- against tshark ------------------------------------------------------------------------------------------

FIELDS = [
    *("frame.number", "ip.src", "ip.dst", "ipv6.src", "ipv6.dst"),
    *("tcp.srcport", "udp.srcport", "tcp.len", "frame.protocols"),
]
OPTIONS = ("ip.defragment:FALSE", "ipv6.defragment:FALSE", "tcp.desegment_tcp_streams:FALSE", "ip.tso_support:TRUE")
# Link types that wiretale does not read.
OTHER_LINKS = {"wpan", "pktap"}


def merged(files: list[Path], path: Path) -> None:
    """All packets of all files, with their link types, as one pcapng."""
    subprocess.run(["mergecap", "-a", "-F", "pcapng", "-w", path, *files], check=True, capture_output=True)


def is_mergeable(file: Path, scratch: Path) -> bool:
    done = subprocess.run(["mergecap", "-F", "pcapng", "-w", scratch, file], capture_output=True, check=False)
    return done.returncode == 0


def by_tshark(path: Path) -> dict[int, dict[str, list[str]]]:
    """The fields of each frame, every occurrence."""
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=,"]
    command += [word for option in OPTIONS for word in ("-o", option)]
    command += [word for field in FIELDS for word in ("-e", field)]
    text = subprocess.run(command, capture_output=True, check=True).stdout.decode("utf-8", "replace")
    frames = (dict(zip(FIELDS, line.split("\t"), strict=False)) for line in text.splitlines())
    return {int(f["frame.number"]): {k: [x for x in v.split(",") if x] for k, v in f.items()} for f in frames}


def by_wiretale(path: Path) -> dict[int, dict[str, Any]]:
    """Each packet with its sender."""
    trace = wiretale.analyze(path)
    flows = {row["flow"]: row for row in trace.flows.rows()}
    by_frame = {}
    for row in trace.packets(list(flows)).rows():
        flow, end = flows[row["flow"]], ("source", "destination")[row["direction"]]
        by_frame[row["frame"]] = {
            **row,
            **{"protocol": flow["protocol"], "sender": flow[end], "port": flow[f"{end}_port"]},
        }
    return by_frame


def difference(row: dict[str, Any] | None, fields: dict[str, list[str]]) -> str | None:
    """Differences between both programs about a frame."""
    protocols = (fields["frame.protocols"] or [""])[0].split(":")
    if row is None:
        has_ip = {"ip", "ipv6"} & set(protocols) and protocols[0] not in OTHER_LINKS
        return "not decoded" if has_ip else None
    if row["sender"] not in fields["ip.src"] + fields["ipv6.src"]:
        return "tunnel" if protocols[-1] == "udp" or protocols[-2:] == ["udp", "data"] else "sender"
    return transport_difference(row, fields)


def transport_difference(row: dict[str, Any], fields: dict[str, list[str]]) -> str | None:
    """The same above IP: ports, and the payload of TCP."""
    tcp, is_counted = row["protocol"] == "tcp", row["payload_bytes"] is not None
    ports = fields[{"tcp": "tcp.srcport", "udp": "udp.srcport"}.get(row["protocol"], "frame.protocols")]
    if row["protocol"] in ("tcp", "udp") and ports and str(row["port"]) not in ports:
        return "port unknown" if row["port"] is None else "port"
    if tcp and is_counted and fields["tcp.len"] and str(row["payload_bytes"]) not in fields["tcp.len"]:
        return "payload"
    return None


def known_captures() -> dict[str, tuple[int, Counter[str]]]:
    """Captures below ../shared/captures: packets, and the most differences of each kind. Others may be added there."""
    with (Path(__file__).parent / "captures_of_others.tsv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    pairs = {
        row["file"]: [text.rpartition(" ") for text in filter(None, row["differences"].split("; "))] for row in rows
    }
    counts = {file: Counter({kind: int(count) for kind, _, count in kinds}) for file, kinds in pairs.items()}
    return {row["file"]: (int(row["packets"]), counts[row["file"]]) for row in rows}


def differences_of(files: list[Path], scratch: Path) -> dict[Path, tuple[int, Counter[str]]]:
    """Packets of each file, and the differences of each kind; tshark reads all files as one, because it starts slowly."""
    readable = [file for file in files if is_mergeable(file, scratch / "one.pcapng")]
    merged(readable, scratch / "all.pcapng")
    tshark = by_tshark(scratch / "all.pcapng")
    by_file, start = {}, 0
    for file in readable:
        packets, by_frame = wiretale.analyze(file, interfaces_only=True).totals["packets"], by_wiretale(file)
        kinds = (difference(by_frame.get(frame), tshark[start + frame]) for frame in range(1, packets + 1))
        by_file[file] = (packets, Counter(kind for kind in kinds if kind))
        start += packets
    assert start == len(tshark)
    return by_file


# In captures of others: tunnels that Debian's tshark does not follow (Geneve and VXLAN whose inner packet it leaves as data);
# ports and packets whose headers are broken, of which wiretale claims nothing; and fuzzed headers without an Ethernet frame,
# or a segment with a wrong length, of which tshark reads less ("sender", "payload").
@needs.marked(needs.programs("tshark", "mergecap"))
def test_tshark_agrees_on_captures_of_others(tmp_path: Path, real_captures: Path) -> None:
    captures = {
        real_captures / name: expected
        for name, expected in known_captures().items()
        if (real_captures / name).is_file()
    }
    wrong = {
        str(file.relative_to(real_captures)): (packets, dict(kinds))
        for file, (packets, kinds) in differences_of(list(captures), tmp_path).items()
        if packets != captures[file][0] or not kinds <= captures[file][1]
    }
    assert wrong == {}


@needs.marked(needs.programs("tshark", "mergecap"))
def test_tshark_agrees_on_the_samples(tmp_path: Path, samples: Path) -> None:
    by_file = differences_of(sorted(samples.glob("*.pcap")), tmp_path)
    assert {file.name: kinds for file, (_, kinds) in by_file.items() if kinds} == {}
