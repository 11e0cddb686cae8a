# SPDX-License-Identifier: Apache-2.0
"""Headers of switches and tunnels around a conversation: whole, cut, nearly one, and against tshark."""

from __future__ import annotations

import random
import struct
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from scapy.all import GRE, IP, UDP, Dot1Q, Ether, IPv6, Packet, Raw
from scapy.contrib.etherip import EtherIP
from scapy.contrib.gtp import GTP_U_Header, GTPPDUSessionContainer
from scapy.contrib.macsec import MACsec
from scapy.contrib.mpls import MPLS
from scapy.contrib.nsh import NSH
from scapy.layers.vxlan import VXLAN

import needs
import wiretale
from capture_files import enhanced, interface, section, write_pcap

MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")
INNER_PORTS = (1111, 2222)
INNER_ENDS = {4: ("10.1.1.1", "10.2.2.2"), 6: ("fd00::1", "fd00::2")}
TEREDO_ENDS = ("2001:0:c000:201::1", "fd00::2")
Wrap = Callable[[Packet, bool], Packet]  # the inner packet, and whether it goes back


def frame(back: bool, **fields: Any) -> Packet:
    source, destination = reversed(MACS) if back else MACS
    return Ether(src=source, dst=destination, **fields)


def outer(back: bool, protocol: int = 17) -> Packet:
    source, destination = ("192.0.2.2", "192.0.2.1") if back else ("192.0.2.1", "192.0.2.2")
    return frame(back) / IP(src=source, dst=destination, proto=protocol)


def inner(version: int, back: bool = False) -> Packet:
    ends = (*INNER_ENDS[version], *INNER_PORTS)
    source, destination, sport, dport = (ends[i] for i in ((1, 0, 3, 2) if back else (0, 1, 2, 3)))
    layer = IP if version == 4 else IPv6
    return layer(src=source, dst=destination) / UDP(sport=sport, dport=dport) / Raw(b"x" * 40)


def ether_type(packet: Packet) -> bytes:
    return b"\x08\x00" if isinstance(packet, IP) else b"\x86\xdd"


def service(packet: Packet) -> int:
    """The number of the inner packet in NSH and VXLAN-GPE."""
    return 1 if isinstance(packet, IP) else 2


def shim(number: int, there: str, back: str | None = None) -> Wrap:
    """A header in hexadecimal digits behind its EtherType; packets back may have another one, or none."""

    def wrap(packet: Packet, is_back: bool) -> Packet:
        digits = back if is_back else there
        if digits is None:
            return frame(True) / packet
        return frame(is_back, type=number) / Raw(bytes.fromhex(digits) + ether_type(packet)) / packet

    return wrap


def in_udp(port: int, make: Callable[[Packet, bool], Packet], answers: bool = False) -> Wrap:
    """In a datagram to the port; if it `answers`, packets back are from the port."""

    def wrap(packet: Packet, back: bool) -> Packet:
        ports = {"sport": port, "dport": 40000} if back and answers else {"sport": 40000, "dport": port}
        return outer(back) / UDP(**ports) / make(packet, back)

    return wrap


def in_gre(protocol: int, make: Callable[[Packet, bool], Packet]) -> Wrap:
    return lambda packet, back: outer(back, 47) / GRE(proto=protocol) / make(packet, back)


def raw(digits: str) -> Raw:
    return Raw(bytes.fromhex(digits))


def macsec(packet: Packet, back: bool) -> Packet:
    tag = MACsec(SC=0, AN=0, PN=2 if back else 1, type=int.from_bytes(ether_type(packet)))
    return frame(back) / tag / Raw(bytes(packet) + b"\xee" * 16)


def wlan(control: str, back: bool) -> Raw:
    """The header of a data frame with 802.2."""
    source, destination = ("020000000002", "020000000001") if back else ("020000000001", "020000000002")
    return raw(f"{control}0000 {destination} {source} {source} 0000 aaaa03000000")


def eoip(packet: Packet, back: bool) -> Packet:
    bridged = frame(back) / packet
    return outer(back, 47) / raw("20016400") / Raw(struct.pack(">HH", len(bridged), 0x0900)) / bridged


def pptp(packet: Packet, back: bool) -> Packet:
    inside = raw("0021" if isinstance(packet, IP) else "0057") / packet
    return outer(back, 47) / raw("3001880b") / Raw(struct.pack(">HHI", len(inside), 7 + back, 1)) / inside


def teredo(version: str = "", port: int = 3544) -> Wrap:
    """IPv6 between a client, whose address has the prefix of Teredo, and a server or any peer."""

    def wrap(packet: Packet, back: bool) -> Packet:
        source, destination = reversed(TEREDO_ENDS) if back else TEREDO_ENDS
        inside = IPv6(src=source, dst=destination) / packet[UDP]
        return in_udp(port, lambda _, __: raw(version) / inside, answers=True)(packet, back)

    return wrap


def ppp_type(packet: Packet) -> bytes:
    return bytes.fromhex("0021" if isinstance(packet, IP) else "0057")


def amt(packet: Packet, back: bool) -> Packet:
    """A gateway's update, and data of the relay, whose port both have."""
    if back:
        return outer(True) / UDP(sport=40000, dport=2268) / raw("0500 aabbccddeeff 00000001") / packet
    return outer(False) / UDP(sport=2268, dport=40000) / raw("0600") / packet


def ayiya(packet: Packet, back: bool) -> Packet:
    header = f"415211{'04' if isinstance(packet, IP) else '29'} 65000000"
    return raw(header + ("bb" if back else "aa") * 16 + "cc" * 20) / packet


def ipcomp(packet: Packet, back: bool) -> Packet:
    ends = {"src": packet.src, "dst": packet.dst}
    header = IP(**ends, proto=108) if isinstance(packet, IP) else IPv6(**ends, nh=108)
    return frame(back) / header / raw("1100 0000") / packet[UDP]


class Kind(NamedTuple):
    """How packets are wrapped, the path of the flow, and a change of bytes after which it is no such header."""

    wrap: Wrap
    path: str | None
    change: tuple[str, str]
    versions: Sequence[int] = (4, 6)


KINDS = {
    "priority": Kind(shim(0x8100, "e000"), None, ("8100 e000", "8101 e000")),
    "cisco metadata": Kind(shim(0x8909, "0101 0001 0002"), None, ("8909 01", "8909 02")),
    "vn-tag": Kind(shim(0x8926, "8001 0002", "0002 0001"), None, ("8926", "8927")),
    "e-tag": Kind(shim(0x893F, "0001 0002 0000", "0002 0001 0000"), None, ("893f", "893e")),
    "arista": Kind(shim(0xD28B, "0001 0010 65000000 00000001"), None, ("d28b 0001", "d28b 0002")),
    "arista, 6 bytes": Kind(shim(0xD28B, "0001 0120 0000 00000001"), None, ("0001 0120", "0001 0130")),
    "macsec": Kind(macsec, None, ("88e5 00", "88e5 0c")),
    "fabricpath": Kind(
        lambda packet, back: frame(back, type=0x8903) / raw("0440") / frame(back) / Dot1Q(vlan=5) / packet,
        *("vlan 5", ("8903", "8904")),
    ),
    "pbb": Kind(
        lambda packet, back: frame(back, type=0x88E7) / raw("00000100") / frame(back) / packet,
        *("pbb 256", ("88e7", "88e6")),
    ),
    "nsh": Kind(
        lambda packet, back: frame(back, type=0x894F) / NSH(mdtype=1, nextproto=service(packet), spi=1 + back) / packet,
        *(None, ("894f 0f", "894f 4f")),
    ),
    "gtp-u": Kind(
        in_udp(2152, lambda packet, back: GTP_U_Header(gtp_type=255, teid=7 + back) / packet),
        *("gtp-u", ("30ff", "50ff")),
    ),
    "gtp-u, sequence": Kind(
        in_udp(2152, lambda packet, back: GTP_U_Header(gtp_type=255, teid=7 + back, S=1, seq=9) / packet),
        *("gtp-u", ("32ff", "321a")),
    ),
    "gtp-u, extension": Kind(
        in_udp(
            2152,
            lambda packet, back: (
                GTP_U_Header(gtp_type=255, teid=7 + back, E=1, next_ex=0x85)
                / GTPPDUSessionContainer(type=int(back), QFI=9)
                / packet
            ),
        ),
        *("gtp-u", ("0000 00 85 01", "0000 00 85 00")),
    ),
    "teredo": Kind(teredo(), "teredo", ("60000000 0030", "60000000 0031"), [6]),
    "teredo, origin": Kind(teredo("0000 ffff ffffffff"), "teredo", ("0000 ffff", "0002 ffff"), [6]),
    "teredo, peers": Kind(teredo(port=50000), "teredo", ("20010000", "20010001"), [6]),
    "vxlan, reserved bits": Kind(
        in_udp(4789, lambda packet, back: raw(f"ff01d1f2 000007 0{int(back)}") / frame(back) / packet),
        *("vxlan 7", ("ff01", "f701")),
    ),
    "vxlan-gpe": Kind(
        in_udp(4790, lambda packet, _: VXLAN(flags=0x0C, NextProtocol=service(packet), vni=7) / packet),
        *("vxlan 7", ("0c0000", "0d0000")),
    ),
    "nsh in vxlan-gpe": Kind(
        in_udp(
            4790,
            lambda packet, back: (
                VXLAN(flags=0x0C, NextProtocol=4, vni=7)
                / NSH(mdtype=1, nextproto=3, spi=1 + back)
                / frame(back)
                / packet
            ),
        ),
        *("vxlan 7", ("0fc6 01 03", "0fc6 01 13")),
    ),
    "ayiya": Kind(in_udp(5072, ayiya, answers=True), "ayiya", ("415211", "415212")),
    "capwap": Kind(
        in_udp(5247, lambda p, back: raw("00104300 00000000") / wlan("0802", back) / Raw(ether_type(p)) / p, True),
        *("capwap", ("00104300", "01104300")),
    ),
    "capwap, control exchanged": Kind(
        in_udp(5247, lambda p, back: raw("00104300 00000000") / wlan("0208", back) / Raw(ether_type(p)) / p, True),
        *("capwap", ("00104300 00000000", "00104380 00000008")),
    ),
    "lisp": Kind(
        in_udp(4341, lambda packet, _: raw("88000001 00000701") / packet), "lisp 7", ("9c40 10f5", "9c40 10f6")
    ),
    "amt, data and update": Kind(amt, "amt", ("08dc 9c40", "08dd 9c40")),
    "l2tp 3": Kind(
        lambda packet, back: outer(back, 115) / Raw(struct.pack(">I", 7 + back)) / frame(back) / packet,
        *("l2tp", ("0000000702", "0000000002")),
    ),
    "l2tp 3, cookie": Kind(
        lambda packet, back: outer(back, 115) / raw(f"0000000{7 + back} aabbccdd") / frame(back) / packet,
        *("l2tp", ("00000007", "00000000")),
    ),
    "l2tp 3 over udp": Kind(
        in_udp(1701, lambda p, back: Raw(struct.pack(">HHI", 3, 0, 7 + back)) / frame(back) / p, answers=True),
        *("l2tp", ("0003 0000 00000007", "8003 0000 00000007")),
    ),
    "l2tp 2": Kind(
        in_udp(1701, lambda p, back: raw(f"0002 000{1 + back} 0003 ff03") / Raw(ppp_type(p)) / p, answers=True),
        *("l2tp", ("0002 0001 0003", "8002 0001 0003")),
    ),
    "mpls over udp": Kind(in_udp(6635, lambda packet, _: MPLS(label=16, s=1) / packet), "mpls", ("000101", "000100")),
    "eoip": Kind(eoip, "gre 9", ("20016400", "20016401")),
    "pptp": Kind(pptp, "gre 0", ("3001880b", "3001880c")),
    "etherip": Kind(
        lambda packet, back: outer(back, 97) / EtherIP() / frame(back) / packet, "etherip", ("3000", "4000")
    ),
    "aruba gre": Kind(
        in_gre(0x8200, lambda packet, back: wlan("0801", back) / Raw(ether_type(packet)) / packet),
        *("gre 0", ("8200", "8201")),
    ),
    "wccp": Kind(in_gre(0x883E, lambda packet, _: packet), "gre 0", ("883e", "883f")),
    "wccp 2": Kind(in_gre(0x883E, lambda packet, _: raw("20000102") / packet), "gre 0", ("883e", "883f")),
    "pim register": Kind(
        lambda packet, back: outer(back, 103) / raw("2100 0000 00000000") / packet,
        *("pim", ("2100 0000 00", "2100 0000 40")),
    ),
    "ipcomp, none": Kind(ipcomp, None, ("1100 0000", "1100 0002")),
}
CASES_OF_KINDS = [(name, version) for name, kind in KINDS.items() for version in kind.versions]


def analyzed(folder: Path, packets: Iterable[bytes]) -> wiretale.Trace:
    return wiretale.analyze(
        write_pcap(folder / "tunnel.pcap", ((i * 10**6, packet) for i, packet in enumerate(packets)))
    )


def is_inner(flow: dict[str, Any]) -> bool:
    return {flow["source_port"], flow["destination_port"]} == set(INNER_PORTS)


@pytest.mark.parametrize(("name", "version"), CASES_OF_KINDS)
def test_both_directions_of_a_conversation_are_one_flow(tmp_path: Path, name: str, version: int) -> None:
    kind = KINDS[name]
    trace = analyzed(tmp_path, [bytes(kind.wrap(inner(version, back), back)) for back in (False, True, False)])
    (flow,) = trace.flows.rows()
    assert (flow["source_port"], flow["destination_port"], flow["path"], flow["ip_version"]) == (
        *INNER_PORTS,
        kind.path,
        version,
    )
    assert [(row["packets"], row["payload_bytes"]) for row in trace.directions.rows()] == [(2, 80), (1, 40)]


@pytest.mark.parametrize(("name", "version"), CASES_OF_KINDS)
def test_a_cut_packet_is_never_another_one(tmp_path: Path, name: str, version: int) -> None:
    """Every snap length: counted as cut, or with the addresses of the inner or the outer packet."""
    packet = bytes(KINDS[name].wrap(inner(version), False))
    cut = [enhanced(i * 1000, packet[:i], length=len(packet)) for i in range(len(packet))]
    path = tmp_path / "cut.pcapng"
    path.write_bytes(section() + interface() + b"".join(cut))
    trace = wiretale.analyze(path)
    (capture,) = trace.interfaces.rows()
    assert capture["malformed"] == 0, trace.decode_stops
    ends = {(flow["source"], flow["destination"]) for flow in trace.flows.rows()}
    assert ends <= {INNER_ENDS[4], INNER_ENDS[6], TEREDO_ENDS, ("192.0.2.1", "192.0.2.2")}
    assert any(is_inner(flow) for flow in trace.flows.rows())


@pytest.mark.parametrize(("name", "version"), CASES_OF_KINDS)
def test_a_near_miss_is_not_decoded(tmp_path: Path, name: str, version: int) -> None:
    """The packet around it counts, or its reason."""
    kind = KINDS[name]
    packet = bytes(kind.wrap(inner(version), False))
    before, after = map(bytes.fromhex, kind.change)
    assert before in packet
    trace = analyzed(tmp_path, [packet.replace(before, after, 1)])
    assert not any(is_inner(flow) for flow in trace.flows.rows())
    (capture,) = trace.interfaces.rows()
    assert len(trace.flows) == 1 or capture["not_ip"] or len(trace.decode_stops)


# Ports of tunnels, and headers that are valid there.
PORTS = {
    2152: "30ff 0040 00000007",
    3544: "0001 0000 0102030405060708 00 0000 ffff ffffffff",
    4789: "ff01d1f2 00000700",
    4790: "0c000001 00000700",
    5072: "010001 29 65000000 00",
    5247: "00104200 00000000",
    6081: "0000 6558 00000700",
    6635: "000101ff",
    50000: "60",
}


def test_random_datagrams_are_ordinary_ones(tmp_path: Path) -> None:
    """To ports of tunnels, with valid headers or without."""
    numbers = random.Random(17)
    packets = []
    for port, digits in PORTS.items():
        for count in range(500):
            payload = (bytes.fromhex(digits) if count % 2 else b"") + numbers.randbytes(numbers.randrange(1, 100))
            packets.append(bytes(outer(False) / UDP(sport=40000, dport=port) / Raw(payload)))
    trace = analyzed(tmp_path, packets)
    assert {(flow["path"], flow["source"], flow["destination_port"]) for flow in trace.flows.rows()} == {
        (None, "192.0.2.1", port) for port in PORTS
    }
    (capture,) = trace.interfaces.rows()
    assert [capture["not_understood"], capture["malformed"], *filter(None, trace.decode_stops["outcome"])] == [0, 0]


def test_shims_without_end_are_bounded_and_counted(tmp_path: Path) -> None:
    tag = bytes.fromhex("0101 0001 0002 8909")
    deep = bytes(frame(False, type=0x8909)) + tag * 40 + bytes(inner(4))
    trace = analyzed(tmp_path, [deep])
    assert trace.interfaces["not_understood"] == trace.decode_stops["packets"] == [1]
    assert trace.decode_stops["reason"] == ["too-deep"]


# --- against tshark ------------------------------------------------------------------------------------------

# tshark 4.0 leaves these as data without a preference, IPv6 in WCCP 1 too; in CAPWAP it exchanges all bytes of control,
# and without control messages it takes a cookie of L2TP for data.
NOT_IN_TSHARK = {"fabricpath", "ipcomp, none", "capwap", "teredo, peers", "wccp"}
NOT_IN_TSHARK |= {"l2tp 3, cookie"}


def innermost_by_tshark(path: Path) -> dict[int, tuple[str, ...]]:
    """Source, destination and ports of the last IP header of each frame that has one."""
    fields = ("frame.number", "ip.src", "ipv6.src", "ip.dst", "ipv6.dst", "_ws.col.Source", "_ws.col.Destination")
    ports = ("tcp.srcport", "udp.srcport", "tcp.dstport", "udp.dstport")
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", "-E", "occurrence=l", "-o", "ip.defragment:FALSE"]
    command += ["-d", "l2tp.pw_type==0,eth"]  # as control messages would say
    command += [word for field in (*fields, *ports) for word in ("-e", field)]
    text = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    innermost = {}
    for line in text.splitlines():
        row = dict(zip((*fields, *ports), line.split("\t"), strict=True))
        if row["ip.src"] or row["ipv6.src"]:
            tcp = bool(row["tcp.srcport"])
            sport, dport = (row[f"{'tcp' if tcp else 'udp'}.{end}port"] for end in ("src", "dst"))
            innermost[int(row["frame.number"])] = (row["_ws.col.Source"], row["_ws.col.Destination"], sport, dport)
    return innermost


def innermost_by_wiretale(path: Path) -> dict[int, tuple[str, ...]]:
    trace = wiretale.analyze(path)
    flows = trace.flows.rows()
    innermost = {}
    for packet in trace.packets(list(range(len(flows)))).rows():
        flow = flows[packet["flow"]]
        ends = ("source", "destination") if packet["direction"] == 0 else ("destination", "source")
        ports = (flow[f"{end}_port"] for end in ends)
        innermost[packet["frame"]] = (
            *(flow[end] for end in ends),
            *("" if port is None else str(port) for port in ports),
        )
    return innermost


@needs.TSHARK
def test_tshark_finds_the_same_packets(tmp_path: Path) -> None:
    cases = [(name, version) for name, version in CASES_OF_KINDS if name not in NOT_IN_TSHARK]
    packets = [bytes(KINDS[name].wrap(inner(version, back), back)) for name, version in cases for back in (False, True)]
    path = write_pcap(tmp_path / "kinds.pcap", ((i * 10**6, packet) for i, packet in enumerate(packets)))
    wiretale_ends, tshark_ends = innermost_by_wiretale(path), innermost_by_tshark(path)
    differences = {
        cases[(number - 1) // 2]: (wiretale_ends.get(number), tshark_ends.get(number))
        for number in tshark_ends | wiretale_ends
    }
    assert {name: pair for name, pair in differences.items() if pair[0] != pair[1]} == {}


# Captures of others: packets, and the paths of their flows.
REAL = {
    "tls_sgt.pcap": (2431, {None}),
    "vntag.pcap": (3, {"vlan 11"}),
    "gtp-u-http_origin_different_than_host.pcap": (4, {"vlan 3394 / vlan 113 / gtp-u"}),
    "vxlan-non-zero-reserved-fields.pcap": (10, {"vxlan 11"}),
}


@needs.TSHARK
@pytest.mark.parametrize("name", REAL)
def test_tshark_finds_the_same_packets_in_captures_of_others(name: str) -> None:
    path = needs.shared(f"labelled/cases/{name}")
    count, paths = REAL[name]
    wiretale_ends, tshark_ends = innermost_by_wiretale(path), innermost_by_tshark(path)
    assert len(wiretale_ends) == count
    assert {number: pair for number, pair in tshark_ends.items() if pair != wiretale_ends[number]} == {}
    trace = wiretale.analyze(path)
    assert {flow["path"] for flow in trace.flows.rows()} == paths
    assert trace.interfaces.rows()[0]["not_ip"] == 0


def test_the_real_packets_behind_a_vn_tag_are_of_an_experimental_protocol() -> None:
    """Number 253 (RFC 3692), as tshark says, so they have no ports."""
    (flow,) = wiretale.analyze(needs.shared("labelled/cases/vntag.pcap")).flows.rows()
    assert (flow["protocol"], flow["protocol_number"], flow["source_port"]) == ("ip", 253, None)
