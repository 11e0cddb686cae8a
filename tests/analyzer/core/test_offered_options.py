# SPDX-License-Identifier: Apache-2.0
"""What SYNs offer beside the usual options, and DNS answers that were truncated."""

from __future__ import annotations

from pathlib import Path

import pytest
from scapy.all import DNS, DNSQR, IP, UDP

import wiretale
from crafted import analyze_timed, dns_answer, dns_query, ether
from exchange_rows import of_kind
from plain_wire import ACK, ECE, SYN, Connection, Wire, syn_options

CWR = 128
COOKIE = bytes([34, 10, *range(8), 1, 1])
REQUEST = bytes([34, 2, 1, 1])
EXPERIMENT = bytes([254, 12, 0xF9, 0x89, *range(8)])  # Fast Open before RFC 7413
MPTCP = bytes([30, 4, 1, 0])
MD5 = bytes([19, 18, *range(16), 1, 1])
PLAIN = b""
OFFERS = {
    "plain": (SYN, PLAIN, None),
    "cookie": (SYN, COOKIE, "fast_open"),
    "asks for a cookie": (SYN, REQUEST, "fast_open"),
    "experiment": (SYN, EXPERIMENT, "fast_open"),
    "multipath": (SYN, MPTCP, "mptcp"),
    "signed": (SYN, MD5, "signature"),
    "ECN": (SYN | ECE | CWR, PLAIN, "ecn"),
    "ECE alone": (SYN | ECE, PLAIN, None),
    "several": (SYN | ECE | CWR, COOKIE + MPTCP, "fast_open mptcp ecn"),
}


@pytest.mark.parametrize("name", OFFERS)
def test_a_handshake_has_what_its_first_and_last_syn_offered(name: str, tmp_path: Path) -> None:
    flags, option, words = OFFERS[name]
    link = Connection(Wire()).send(0, 0, -1, flags=flags, options=syn_options() + option).open(1_000)
    first = of_kind(wiretale.analyze(link.wire.write(tmp_path / "first.pcap")), "connect")[0]
    assert (first["attempts"], first["syn_options"], first["last_syn_options"]) == (2, words, None)
    link = Connection(Wire()).send(0, 0, -1, flags=flags, options=syn_options() + option)
    link.send(20, 1, -1, flags=SYN | ACK, ack=0, options=syn_options()).send(40, 0, 0)
    only = of_kind(wiretale.analyze(link.wire.write(tmp_path / "only.pcap")), "connect")[0]
    assert (only["outcome"], only["syn_options"], only["last_syn_options"]) == ("answered", words, words)


def test_a_truncated_dns_answer_is_marked(tmp_path: Path) -> None:
    cut = DNS(id=2, qr=1, tc=1, qd=DNSQR(qname="a.example"))
    answer = ether(IP(src="10.0.0.53", dst="10.0.0.1") / UDP(sport=53, dport=4002) / cut)
    talk = [dns_query(0.0, 1), dns_answer(0.01, 1), dns_query(1.0, 2, port=4002), (1.01, answer), dns_query(2.0, 3)]
    truncated = {row["id"]: row["truncated"] for row in of_kind(analyze_timed(tmp_path, talk), "dns")}
    assert truncated == {1: False, 2: True, 3: None}
