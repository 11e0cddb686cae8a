# SPDX-License-Identifier: Apache-2.0
"""`wiretale cut --anonymize`: pseudonyms, what is left of a packet, and findings before and after."""

from __future__ import annotations

import os
import subprocess
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.compat import raw
from scapy.layers.inet import ICMP, IP, TCP, UDP, ICMPerror, IPerror, IPOption_RR, TCPerror
from scapy.layers.inet6 import ICMPv6ND_NS, ICMPv6NDOptSrcLLAddr, IPv6, IPv6ExtHdrRouting
from scapy.layers.l2 import ARP, GRE, Dot1Q, Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet, Raw

import needs
import wiretale
from capture_files import write_pcap
from placed import placed
from wiretale.analyzer import _core

KEY = bytes(range(32))
# Findings whose evidence is payload: numbers of packets and blocks, DNS, TLS, HTTP, QUIC.
OF_PAYLOAD = {
    *(
        "blocks-lost",
        "blocks-duplicate",
        "blocks-reordered",
        "blocks-corrupt",
        "several-points",
        "head-of-line",
        "jitter",
    ),
    *("loss-pattern", "udp-above-path", "dns-failed", "dns-slow", "dns-unanswered", "tls-alert", "tls-handshake-slow"),
}
COLUMNS = (
    "code",
    "severity",
    "scope",
    "flow",
    "cost",
    "cost_unit",
    "impact",
    "first_frame",
    "last_frame",
    "first_ns",
    "last_ns",
)


def common_bits(first: bytes, second: bytes) -> int:
    """Length of the common prefix."""
    differing = int.from_bytes(first) ^ int.from_bytes(second)
    return len(first) * 8 - differing.bit_length()


addresses = st.sampled_from((4, 16)).flatmap(
    lambda size: st.tuples(st.binary(min_size=size, max_size=size), st.binary(min_size=size, max_size=size))
)
FIXED = {ip_address(text).packed for text in ("0.0.0.0", "255.255.255.255", "::", "::1")}


@given(addresses, st.integers(0, 128), st.binary(min_size=32, max_size=32))
def test_pseudonyms_preserve_prefixes(pair: tuple[bytes, bytes], shared: int, key: bytes) -> None:
    first, second = pair
    bits = len(first) * 8
    mask = (1 << bits) - (1 << max(0, bits - shared))
    second = ((int.from_bytes(first) & mask) | (int.from_bytes(second) & ~mask)).to_bytes(len(first))
    mapped = [_core.pseudonym(address, key) for address in (first, second)]
    if not FIXED & {first, second, *mapped}:
        assert common_bits(first, second) == common_bits(*mapped)


@given(st.binary(min_size=4, max_size=4), st.binary(min_size=16, max_size=16), st.binary(min_size=32, max_size=32))
def test_kinds_of_addresses_stay(four: bytes, six: bytes, key: bytes) -> None:
    before, after = (ip_address(address) for address in (four, _core.pseudonym(four, key)))
    assert before.is_multicast == after.is_multicast
    before, after = (ip_address(address) for address in (six, _core.pseudonym(six, key)))
    assert (before.is_multicast, before.is_link_local) == (after.is_multicast, after.is_link_local)
    assert all(_core.pseudonym(address, key) == address for address in FIXED)


@given(st.binary(min_size=6, max_size=6))
def test_mac_addresses_keep_two_bits(mac: bytes) -> None:
    mapped = _core.pseudonym(mac, KEY)
    assert mapped[0] & 3 == mac[0] & 3
    assert (mapped == mac) == (mac in (bytes(6), b"\xff" * 6))


def anonymized(tmp_path: Path, run: Any, capture: Path, *words: str) -> Path:
    key, out = tmp_path / "key", tmp_path / "public.pcapng"
    key.write_bytes(b"a key of the tests, not random at all")
    done = run("cut", capture, "--anonymize", "--key", key, "-o", out, "--overwrite", *words)
    assert done.returncode in (0, 3), done.stderr
    return out


@pytest.mark.parametrize("words", [(), ("--headers",)], ids=["zeroed", "headers"])
def test_findings_stay(wiretale_run: Any, sample: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    traces = (wiretale.analyze(path) for path in (sample, anonymized(tmp_path, wiretale_run, sample, *words)))
    before, after = ([tuple(row[c] for c in COLUMNS) for row in placed(trace)] for trace in traces)
    assert after == [row for row in before if row[0] not in OF_PAYLOAD | {"capture-damaged"}]


def originals(capture: Path) -> set[bytes]:
    """Addresses of the flows of a capture and of the frames' link headers."""
    flows = wiretale.analyze(capture).flows
    texts = {text for name in ("source", "destination") for text in flows.column(name)}
    addresses = {ip_address(text).packed for text in texts if text}
    command = ["tshark", "-r", capture, "-T", "fields", "-e", "eth.addr", "-e", "arp.src.hw_mac"]
    output = subprocess.run(command, capture_output=True, text=True).stdout  # also of a damaged capture
    addresses |= {bytes.fromhex(text.replace(":", "")) for text in output.replace(",", " ").split()}
    return {address for address in addresses if len(set(address)) > 1 and address[:1] != b"\0" and address not in FIXED}


@needs.marked(needs.programs("tshark"))
def test_no_original_address_is_left(wiretale_run: Any, sample: Path, tmp_path: Path) -> None:
    content = anonymized(tmp_path, wiretale_run, sample, "--annotate").read_bytes()
    leaked = {address for address in originals(sample) if address in content}
    assert not leaked


PEERS = IP(src="203.0.113.77", dst="198.51.100.88")
SIX = IPv6(src="2001:db8:1::77", dst="2001:db8:2::88")
LINK = Ether(src="02:11:22:33:44:55", dst="02:aa:bb:cc:dd:ee")
SECRET = b"the secret text of the payload"
INNER = IP(src="192.0.2.33", dst="192.0.2.44") / TCP(sport=1, dport=2) / SECRET
CRAFTED: dict[str, Packet] = {
    "tcp": LINK / PEERS / TCP(sport=1, dport=2, options=[("MSS", 1400), (34, b"cookie00")]) / SECRET,
    "udp6": LINK / SIX / UDP(sport=1, dport=2) / SECRET,
    "vlan": LINK / Dot1Q(vlan=7) / PEERS / UDP(sport=1, dport=2) / SECRET,
    "arp": LINK / ARP(hwsrc="02:11:22:33:44:55", psrc="203.0.113.77", hwdst="02:aa:bb:cc:dd:ee", pdst="198.51.100.88"),
    "quote": LINK
    / IP(src="192.0.2.99", dst="203.0.113.77")
    / ICMP(type=3, code=4)
    / IPerror(src="203.0.113.77", dst="198.51.100.88")
    / TCPerror(sport=1, dport=2),
    "redirect": LINK / PEERS / ICMP(type=5, code=1, gw="192.0.2.33") / ICMPerror(),
    "neighbor": LINK / SIX / ICMPv6ND_NS(tgt="2001:db8:1::77") / ICMPv6NDOptSrcLLAddr(lladdr="02:11:22:33:44:55"),
    "routing": LINK / SIX / IPv6ExtHdrRouting(addresses=["2001:db8:3::99"]) / UDP(sport=1, dport=2) / SECRET,
    "record": LINK / IP(src="203.0.113.77", dst="198.51.100.88", options=[IPOption_RR(routers=["192.0.2.33"])]) / UDP(),
    "vxlan": LINK / PEERS / UDP(sport=9, dport=4789) / VXLAN(vni=5) / LINK / INNER,
    "gre": LINK / PEERS / GRE(chksum_present=1) / INNER,
    "ipip": LINK / PEERS / INNER,
    "unknown": LINK / Raw(b"\x88\xccname of the switch"),
}
ADDRESSES = [
    *(ip_address(text).packed for text in ("203.0.113.77", "198.51.100.88", "192.0.2.33", "192.0.2.44", "192.0.2.99")),
    *(ip_address(text).packed for text in ("2001:db8:1::77", "2001:db8:2::88", "2001:db8:3::99")),
    *(bytes.fromhex(text) for text in ("021122334455", "02aabbccddee")),
    b"secret",
    b"cookie",
    b"switch",
]
BAD = " || ".join(f"{kind}.checksum.status == 0" for kind in ("ip", "tcp", "udp", "icmp", "icmpv6"))


@needs.marked(needs.programs("tshark"))
@pytest.mark.parametrize("name", CRAFTED)
def test_each_layer_is_anonymized_with_right_checksums(wiretale_run: Any, tmp_path: Path, name: str) -> None:
    source = write_pcap(tmp_path / "crafted.pcap", [(10**18, raw(CRAFTED[name]))])
    out = anonymized(tmp_path, wiretale_run, source)
    assert [address for address in ADDRESSES if address in out.read_bytes()] == []
    checks = [word for kind in ("ip", "tcp", "udp") for word in ("-o", f"{kind}.check_checksum:TRUE")]
    before, after = (
        subprocess.run(
            ["tshark", *checks, "-r", path, "-T", "fields", "-e", "frame.protocols"], capture_output=True, text=True
        )
        for path in (source, out)
    )
    layers = [text.removesuffix("\n").removesuffix(":data").split(":lldp")[0] for text in (before.stdout, after.stdout)]
    assert layers[0] == layers[1]
    wrong = BAD.replace("tcp.", "udp.") if name == "quote" else BAD  # a quotation lacks bytes that its checksum covers
    bad = subprocess.run(["tshark", *checks, "-r", out, "-Y", wrong], capture_output=True, text=True, check=True).stdout
    assert name == "unknown" or not bad


def test_different_payloads_stay_different(wiretale_run: Any, tmp_path: Path) -> None:
    """Without it, equal headers would make duplicates of them."""
    packets = [(10**18 + n, raw(LINK / PEERS / UDP(sport=1, dport=2) / (b"%30d" % n))) for n in (1, 2, 2)]
    out = anonymized(tmp_path, wiretale_run, write_pcap(tmp_path / "x.pcap", packets))
    bodies = [row[:60] for row in out.read_bytes().split(bytes.fromhex("0800"))[1:]]
    assert bodies[0] != bodies[1] and bodies[1] == bodies[2]


def test_one_key_gives_the_same_pseudonyms_and_no_key_others(wiretale_run: Any, samples: Path, tmp_path: Path) -> None:
    capture = samples / "tcp_losses.pcap"
    first = anonymized(tmp_path, wiretale_run, capture).read_bytes()
    assert first == anonymized(tmp_path, wiretale_run, capture).read_bytes()
    out = tmp_path / "random.pcapng"
    assert wiretale_run("cut", capture, "--anonymize", "-o", out).returncode == 0
    assert out.read_bytes() != first and len(out.read_bytes()) == len(first)


def test_names_of_interfaces_are_dropped(wiretale_run: Any, samples: Path, tmp_path: Path) -> None:
    capture = samples / "two_interfaces.pcapng"
    names = [name for name in wiretale.analyze(capture, interfaces_only=True).interfaces.column("name") if name]
    content = anonymized(tmp_path, wiretale_run, capture).read_bytes()
    assert names and not [name for name in names if os.fsencode(name) in content]
