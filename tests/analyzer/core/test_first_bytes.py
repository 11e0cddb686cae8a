# SPDX-License-Identifier: Apache-2.0
"""Applications of flows by their first bytes: crafted DNS, TLS and HTTP."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import pytest
from scapy.all import DNS, DNSQR, DNSRR, DNSRROPT, IP, UDP, Packet, Raw

import needs
import wiretale
from application_wire import (
    ALPN,
    CHANGE,
    CLIENT,
    IS_13,
    SECRET,
    SNI,
    Talk,
    answer,
    datagram,
    extension,
    hello,
    question,
    record,
    vector,
)
from checkout import SAMPLES
from crafted import analyze_timed, ether
from exchange_rows import of_kind

Row = dict[str, Any]


def only_row(table: Any) -> Row:
    (row,) = table if isinstance(table, list) else table.rows()
    return dict(row)


def test_an_answer_belongs_to_the_first_query(tmp_path: Path) -> None:
    timed = [
        (0.0, datagram(question())),
        (1.0, datagram(question(name="WWW.example.ORG"))),
        (1.25, datagram(answer(), back=True)),
        (1.26, datagram(answer(), back=True)),
    ]
    trace = analyze_timed(tmp_path, timed)
    row = only_row(of_kind(trace, "dns"))
    assert (row["name"], row["type"], row["attempts"], row["code"]) == ("www.example.org", "A", 2, "NOERROR")
    assert row["waited_ns"] == pytest.approx(1.25e9, abs=2000) and (row["asked_frame"], row["answered_frame"]) == (
        1,
        3,
    )
    flow = only_row(trace.flows)
    assert (flow["application"], flow["server_name"]) == ("dns", "www.example.org")


def test_a_duplicate_of_the_capture_is_no_retry(tmp_path: Path) -> None:
    timed = [(0.0, datagram(question(), ip_id=5)), (0.0001, datagram(question(), ip_id=5))]
    assert only_row(of_kind(analyze_timed(tmp_path, timed), "dns"))["attempts"] == 1


def test_questions_of_one_flow_are_distinguished(tmp_path: Path) -> None:
    timed = [
        (0.0, datagram(question(1))),
        (0.001, datagram(question(1, kind="AAAA"))),
        (0.002, datagram(question(2, name="a.b\\c.example"))),
        (0.1, datagram(answer(1, kind="AAAA", code=2), back=True)),
        (0.2, datagram(answer(1, name="other.example"), back=True)),
        (0.3, datagram(answer(2, name="a.b\\c.example", code=3), back=True)),
    ]
    rows = of_kind(analyze_timed(tmp_path, timed), "dns")
    assert [(row["id"], row["type"], row["name"], row["code"]) for row in rows] == [
        (1, "A", "www.example.org", None),
        (1, "AAAA", "www.example.org", "SERVFAIL"),
        (2, "A", "a.b\\092c.example", "NXDOMAIN"),
    ]
    assert rows[0]["answered_frame"] is None and rows[0]["attempts"] == 1


@pytest.mark.parametrize(
    "message",
    [
        b"",
        bytes(11),
        question()[:20],
        struct.pack("!6H", 1, 0, 1, 0, 0, 0) + b"\xc0\x0c\0\1\0\1",  # a pointer to itself
        struct.pack("!6H", 1, 0, 1, 0, 0, 0) + b"\xc0\xff\0\1\0\1",  # forward
        struct.pack("!6H", 1, 0, 1, 0, 0, 0) + b"\x3f" * 300,
        struct.pack("!6H", 1, 0, 2, 0, 0, 0) + b"\0\0\1\0\1" * 2,
    ],
)
def test_malformed_messages_are_no_dns(tmp_path: Path, message: bytes) -> None:
    trace = analyze_timed(tmp_path, [(0.0, datagram(message))])
    assert not len(of_kind(trace, "dns")) and only_row(trace.flows)["application"] is None


def test_dns_on_another_port_is_recognized_by_its_content(tmp_path: Path) -> None:
    timed = [
        (0.0, datagram(question(0xC001), server=8600)),  # its first byte may begin a long header of QUIC
        (1.0, datagram(question(0xC001), server=8600)),
        (1.3, datagram(answer(0xC001, code=2), back=True, server=8600)),
        (1.4, datagram(bytes(DNS(id=9, qd=DNSQR(qname="e.example"), ar=DNSRROPT())), server=8600)),
        (
            1.5,
            datagram(bytes(DNS(id=9, qr=1, qd=DNSQR(qname="e.example"), ar=DNSRROPT(extrcode=1))), True, server=8600),
        ),
    ]
    trace = analyze_timed(tmp_path, timed)
    rows = of_kind(trace, "dns")
    assert [(row["id"], row["attempts"], row["code"]) for row in rows] == [(0xC001, 2, "SERVFAIL"), (9, 1, "BADVERS")]
    assert rows[0]["waited_ns"] == pytest.approx(1.3e9, abs=2000)
    assert only_row(trace.flows)["application"] == "dns"


@pytest.mark.parametrize(
    "message",
    [
        question() + b"\0",  # more than the records
        question()[:-1],
        question()[:2] + b"\x81" + question()[3:],  # a response by its flags, without their record
        question()[:5] + b"\2" + question()[6:],
        question(name="bin\x01ary.example"),
        struct.pack("!6H", 7, 0x0100, 1, 0, 0, 0) + b"\1a\0\0\1\0\x05",  # no class
        struct.pack("!6H", 7, 0x0500, 1, 0, 0, 0) + b"\1a\0\0\1\0\1",  # AA in a query
        bytes(4) + b"\0\1" + bytes(40),
    ],
)
def test_other_datagrams_are_no_dns(tmp_path: Path, message: bytes) -> None:
    flow = only_row(analyze_timed(tmp_path, [(0.0, datagram(message, server=8600))]).flows)
    expected = "dns" if message[2] == 0x81 else None  # of an answer the flags and the question are enough
    assert (flow["application"], flow["server_name"] is None) == (expected, expected is None)


def test_random_datagrams_are_no_dns(tmp_path: Path) -> None:
    """Random bytes behind a header of DNS, which one in 2 ** 40 datagrams has: the records do not fit."""
    source = random.Random(1)
    messages = [source.randbytes(2) + question()[2:12] + source.randbytes(source.randrange(5, 60)) for _ in range(2000)]
    timed = [(n / 1000, datagram(message, port=1024 + n, server=9)) for n, message in enumerate(messages)]
    assert set(analyze_timed(tmp_path, timed).flows.column("application")) == {None}


def multicast(message: bytes, port: int, source: int, group: str) -> Packet:
    return ether(IP(src=CLIENT, dst=group) / UDP(sport=source, dport=port) / Raw(message))


def test_mdns_and_llmnr_have_their_names(tmp_path: Path) -> None:
    """Answers to multicast come from other addresses, so that no question of such a flow is unanswered."""
    several = bytes(
        DNS(id=0, qd=[DNSQR(qname="_ipp._tcp.local", qtype="PTR", unicastresponse=1), DNSQR(qname="b.local")])
    )
    reply = bytes(DNS(id=0, qr=1, aa=1, qd=[], an=[DNSRR(rrname="a.local", rdata="10.0.0.9")]))
    timed = [
        (0.0, multicast(several, 5353, 5353, "224.0.0.251")),
        (0.1, multicast(reply, 5353, 5353, "224.0.0.251")),
        (0.2, multicast(question(name="printer"), 5355, 40001, "224.0.0.252")),
        (9.0, datagram(question(name="server"), server=5355)),
        (9.1, datagram(answer(name="server"), True, server=5355)),
        (9.2, multicast(bytes(60), 5353, 5353, "224.0.0.251")),
        (9.9, multicast(b"x" * 60, 5355, 50000, "224.0.0.9")),
    ]
    trace = analyze_timed(tmp_path, timed)
    names = [(row["application"], row["server_name"]) for row in trace.flows.rows()]
    assert names == [("mdns", "_ipp._tcp.local"), ("llmnr", "printer"), ("llmnr", "server"), (None, None)]
    row = only_row(of_kind(trace, "dns"))
    assert (row["name"], row["code"]) == ("server", "NOERROR")
    assert not [row for row in trace.findings.rows() if row["code"] == "dns-unanswered"]


def test_the_name_service_of_netbios_is_no_dns(tmp_path: Path) -> None:
    name = "EHDADADEDADFDADADGCNFDEDDADBCACA"
    message = bytes(DNS(id=45, rd=1, qd=DNSQR(qname=name, qtype=32)))
    timed = [(0.0, ether(IP(src=CLIENT, dst="10.0.0.255") / UDP(sport=137, dport=137) / Raw(message)))]
    assert only_row(analyze_timed(tmp_path, timed).flows)["application"] is None


def test_answers_behind_the_bytes_that_are_read_are_not_missing(tmp_path: Path) -> None:
    """Questions over TCP whose answers are behind the first 16 kB of their direction have no row."""
    names = [f"{number}-" + "n" * 50 + ".example.org" for number in range(150)]
    filler = DNSRR(rrname="x.example", type="TXT", rdata=["t" * 200])
    questions = b"".join(vector(question(number, name), 2) for number, name in enumerate(names))
    answered = b"".join(
        vector(bytes(DNS(id=number, qr=1, qd=DNSQR(qname=name), an=filler)), 2) for number, name in enumerate(names)
    )
    talk = Talk(53)
    for back, data, start in ((False, questions, 0.02), (True, answered, 0.1)):
        for at in range(0, len(data), 1400):
            talk.send(start + at / 1e6, data[at : at + 1400], back, at)
    rows = of_kind(talk.analyze(tmp_path), "dns")
    assert len(answered) > 40_000 and 40 < len(rows) < 60 and all(row["code"] == "NOERROR" for row in rows)


def test_dns_over_tcp_of_another_port(tmp_path: Path) -> None:
    talk = Talk(8053).send(0.02, vector(question(), 2)).send(0.08, vector(answer(), 2), back=True)
    row = only_row(of_kind(talk.analyze(tmp_path), "dns"))
    assert row["waited_ns"] == pytest.approx(0.06e9, abs=2000)


def test_dns_over_tcp_in_pieces(tmp_path: Path) -> None:
    query, answered = vector(question(), 2), vector(answer(), 2)
    talk = Talk(53).send(0.02, query[:1]).send(0.03, query[1:], position=1)
    talk.send(0.08, answered[:9], back=True).send(0.1, answered[9:], back=True, position=9)
    row = only_row(of_kind(talk.analyze(tmp_path), "dns"))
    assert row["waited_ns"] == pytest.approx(0.07e9, abs=2000) and row["code"] == "NOERROR"


def test_a_handshake_of_tls_1_3(tmp_path: Path) -> None:
    first = hello(1, b"s" * 32, SNI, ALPN)
    talk = Talk(443).send(0.02, first).send(0.07, hello(2, b"s" * 32, IS_13) + CHANGE + SECRET, back=True)
    talk.send(0.09, CHANGE + SECRET, position=len(first))
    trace = talk.analyze(tmp_path)
    row = only_row(trace.handshakes)
    names = ("protocol", "version", "server_name", "alpn", "resumed", "alert", "round_trips")
    assert [row[name] for name in names] == ["tls", "1.3", "www.example.org", "h2,http/1.1", False, None, 1]
    assert (row["client_hello_frame"], row["server_hello_frame"], row["finished_frame"]) == (4, 5, 6)
    assert row["duration_ns"] == pytest.approx(0.07e9, abs=2000)
    assert row["server_ns"] == pytest.approx(0.04e9, abs=2000)  # 50 ms, of which 10 ms are the RTT of the handshake
    flow = only_row(trace.flows)
    assert (flow["application"], flow["server_name"]) == ("tls", "www.example.org")


def test_a_retry_costs_a_round_trip_and_a_psk_resumes(tmp_path: Path) -> None:
    retry = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
    first, asks = hello(1, b""), hello(2, b"", IS_13, random=retry)
    talk = Talk(443).send(0.02, first).send(0.04, asks, back=True).send(0.05, CHANGE + first, position=len(first))
    talk.send(0.07, hello(2, b"", IS_13, extension(41, b"\0\0")) + SECRET, back=True, position=len(asks))
    talk.send(0.08, SECRET, position=2 * len(first) + len(CHANGE))
    row = only_row(talk.analyze(tmp_path).handshakes)
    assert (row["round_trips"], row["resumed"], row["version"]) == (2, True, "1.3")
    assert row["duration_ns"] == pytest.approx(0.06e9, abs=2000)


@pytest.mark.parametrize("resumed", [False, True])
def test_a_handshake_of_tls_1_2(tmp_path: Path, resumed: bool) -> None:
    first, second = (
        hello(1, b"s" * 32, SNI, ALPN),
        hello(2, (b"s" if resumed else b"t") * 32, extension(16, vector(vector(b"h2", 1), 2))),
    )
    finished = CHANGE + record(22, bytes(40))
    talk = Talk(443).send(0.02, first).send(0.04, second + (finished if resumed else b""), back=True)
    talk.send(0.05, finished, position=len(first))
    talk.send(0.08, SECRET if resumed else finished, back=True, position=len(second) + resumed * len(finished))
    row = only_row(talk.analyze(tmp_path).handshakes)
    assert (row["version"], row["resumed"], row["alpn"]) == ("1.2", resumed, "h2")
    assert row["round_trips"] == (1 if resumed else 2)
    assert row["duration_ns"] == pytest.approx(0.03e9 if resumed else 0.06e9, abs=2000)


def test_an_alert_of_the_server(tmp_path: Path) -> None:
    talk = Talk(8443).send(0.02, hello(1, b"", SNI)).send(0.04, record(21, b"\2\x28"), back=True)
    row = only_row(talk.analyze(tmp_path).handshakes)
    assert (row["alert"], row["alert_direction"], row["version"], row["duration_ns"]) == (
        "handshake_failure",
        1,
        None,
        None,
    )


def test_pieces_out_of_order_are_placed(tmp_path: Path) -> None:
    first = hello(1, b"", SNI, extension(21, bytes(2000)))
    talk = (
        Talk(443)
        .send(0.02, first[1000:], position=1000)
        .send(0.03, first[:700])
        .send(0.04, first[600:1100], position=600)
    )
    row = only_row(talk.analyze(tmp_path).handshakes)
    assert row["server_name"] == "www.example.org" and row["client_hello_frame"] in {5, 6}


def test_a_hello_over_segments_has_its_fields(tmp_path: Path) -> None:
    first = hello(1, b"s" * 32, extension(51, bytes(1600)), SNI, ALPN)
    talk = Talk(443).send(0.021, first[1400:], position=1400).send(0.02, first[:1400])
    talk.send(0.07, hello(2, b"s" * 32, IS_13) + CHANGE + SECRET, back=True)
    row = only_row(talk.send(0.09, CHANGE + SECRET, position=len(first)).analyze(tmp_path).handshakes)
    assert (row["server_name"], row["alpn"], row["version"], row["round_trips"]) == (
        "www.example.org",
        "h2,http/1.1",
        "1.3",
        1,
    )
    assert row["duration_ns"] == pytest.approx(0.07e9, abs=2000)


@pytest.mark.parametrize("size", [1, 3, 7, 40])
@pytest.mark.parametrize("segment", [11, 5000])
def test_a_hello_over_records_has_its_fields(tmp_path: Path, size: int, segment: int) -> None:
    bodies = [hello(1, b"", SNI, ALPN)[5:], hello(2, b"", extension(16, vector(vector(b"h2", 1), 2)))[5:]]
    first, second = (b"".join(record(22, body[at : at + size]) for at in range(0, len(body), size)) for body in bodies)
    talk = Talk(443)
    for back, data, start in ((False, first, 0.02), (True, second, 0.5)):
        for at in range(0, len(data), segment):
            talk.send(start + at / 1e4, data[at : at + segment], back, at)
    row = only_row(talk.analyze(tmp_path).handshakes)
    assert (row["server_name"], row["alpn"], row["version"]) == ("www.example.org", "h2", "1.2")


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("size, is_complete", [(3000, True), (6000, True), (12_000, True), (20_000, False)])
def test_a_handshake_ends_behind_a_long_certificate(tmp_path: Path, size: int, is_complete: bool, lost: bool) -> None:
    """The certificate is skipped without being stored, also if one of its segments comes late."""
    first = hello(1, b"", SNI)
    flight = hello(2, b"t" * 32) + record(22, b"\x0b" + vector(bytes(size), 3)) + record(22, b"\x0e\0\0\0")
    talk, finished = Talk(443).send(0.02, first), CHANGE + record(22, bytes(40))
    for at in range(0, len(flight), 1400):
        late = 0.2 if lost and at == 1400 else 0
        talk.send(0.04 + at / 1e6 + late, flight[at : at + 1400], back=True, position=at)
    talk.send(0.3, finished, position=len(first)).send(0.35, finished, back=True, position=len(flight))
    talk.send(0.4, SECRET, position=len(first) + len(finished))
    row = only_row(talk.analyze(tmp_path).handshakes)
    assert (row["server_name"], row["version"]) == ("www.example.org", "1.2")
    assert (row["round_trips"], row["alert"]) == (2 if is_complete else None, None)
    assert row["duration_ns"] == (pytest.approx(0.33e9, abs=2000) if is_complete else None)
    arrived = 0.24 if lost else 0.04 + (len(flight) - 1) // 1400 * 1400 / 1e6
    if is_complete:
        assert row["client_ns"] == pytest.approx((0.3 - arrived) * 1e9, abs=2e6)


def test_what_a_hello_has_within_4_kb_is_read(tmp_path: Path) -> None:
    first = hello(1, b"", SNI, extension(41, bytes(5000)), ALPN)
    talk = Talk(443)
    for at in range(0, len(first), 1400):
        talk.send(0.02 + at / 1e6, first[at : at + 1400], position=at)
    talk.send(0.07, hello(2, b"", IS_13) + SECRET, back=True).send(0.09, SECRET, position=len(first))
    row = only_row(talk.analyze(tmp_path).handshakes)
    assert (row["server_name"], row["alpn"], row["version"], row["ech"]) == ("www.example.org", None, "1.3", None)
    assert row["duration_ns"] == pytest.approx(0.07e9, abs=2000)


def test_an_encrypted_hello_is_noted(tmp_path: Path) -> None:
    row = only_row(Talk(443).send(0.02, hello(1, b"", SNI, extension(0xFE0D, bytes(90)))).analyze(tmp_path).handshakes)
    assert (row["server_name"], row["ech"]) == ("www.example.org", True)
    assert only_row(Talk(443).send(0.02, hello(1, b"", SNI)).analyze(tmp_path).handshakes)["ech"] is False


def test_an_alert_in_place_of_the_finished_ends_the_handshake(tmp_path: Path) -> None:
    """A client of TLS 1.3 that refuses the certificate sends an encrypted alert, whose record has 19 bytes."""
    first = hello(1, b"", SNI)
    talk = Talk(443).send(0.02, first).send(0.04, hello(2, b"", IS_13) + SECRET, back=True)
    row = only_row(talk.send(0.05, CHANGE + record(23, bytes(19)), position=len(first)).analyze(tmp_path).handshakes)
    assert (row["alert"], row["alert_direction"], row["duration_ns"]) == ("encrypted", 0, None)


def test_early_data_is_no_finished(tmp_path: Path) -> None:
    first = hello(1, b"", SNI, extension(42, b""))
    talk = Talk(443).send(0.02, first + SECRET).send(0.04, hello(2, b"", IS_13) + SECRET, back=True)
    row = only_row(talk.send(0.05, SECRET, position=len(first) + len(SECRET)).analyze(tmp_path).handshakes)
    assert (row["version"], row["duration_ns"], row["alert"]) == ("1.3", None, None)


@pytest.mark.parametrize("handshake", [True, False])
def test_the_first_request_of_http(tmp_path: Path, handshake: bool) -> None:
    request = b"POST /secret HTTP/1.1\r\nUser-Agent: x\r\nhOsT:  www.example.org:8080 \r\n\r\n"
    talk = Talk(8080, handshake).send(0.02, request[:40]).send(0.03, request[40:], position=40)
    talk.send(0.05, b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\n", back=True)
    trace = talk.analyze(tmp_path)
    row = only_row(of_kind(trace, "http"))
    assert (row["type"], row["name"], row["code"]) == ("POST", "www.example.org:8080", "404")
    assert (row["asked_frame"], row["answered_frame"]) == (1 + 3 * handshake, 3 + 3 * handshake)
    assert only_row(trace.flows)["server_name"] == "www.example.org:8080"
    assert "secret" not in str(of_kind(trace, "http"))


@pytest.mark.parametrize(
    "line, host",
    [
        ("GET http://user:word@proxied.example:8080/x?u=http://other HTTP/1.1", "proxied.example:8080"),
        ("CONNECT far.example:443 HTTP/1.1", "far.example:443"),
        ("PROPFIND /dav HTTP/1.1", "www.example.org"),
        ("OPTIONS * HTTP/1.1", "www.example.org"),
    ],
)
def test_the_host_is_that_of_the_target_if_it_has_one(tmp_path: Path, line: str, host: str) -> None:
    request = f"{line}\r\nHost: www.example.org\r\n\r\nGET / HTTP/1.1\r\nHost: pipelined.example\r\n\r\n"
    talk = Talk(3128).send(0.02, request.encode())
    row = only_row(
        of_kind(talk.send(0.05, b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 404 No\r\n\r\n", back=True).analyze(tmp_path), "http")
    )
    assert (row["type"], row["name"], row["code"]) == (line.split(" ")[0], host, "200")


@pytest.mark.parametrize(
    "line, expects",
    [
        ("Expect: 100-continue", True),
        ("expect:\t 100-Continue", True),
        ("Expect: 200-ok", False),
        ("Expect:", False),
        ("Expected: 100-continue", False),
    ],
)
@pytest.mark.parametrize("complete", [True, False])
def test_a_request_says_whether_it_waits_for_100_continue(
    tmp_path: Path, line: str, expects: bool, complete: bool
) -> None:
    head = f"PUT / HTTP/1.1\r\n{line}\r\nHost: a\r\n" + "\r\n" * complete
    talk = Talk(8080).send(0.02, head.encode()).send(0.05, b"HTTP/1.1 200 OK\r\n\r\n", back=True)
    row = only_row(of_kind(talk.analyze(tmp_path), "http"))
    assert row["expects_continue"] is (expects if complete else None)


@pytest.mark.parametrize(
    "lines, upgrades",
    [
        ("Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: eA==\r\n", True),
        ("sec-websocket-key: eA==\r\nupgrade:\tWebSocket\r\n", True),
        ("Connection: close\r\nSec-WebSocket-Key: eA==\r\n", False),
        ("Upgrade: h2c\r\nSec-WebSocket-Key: eA==\r\n", False),
        ("Upgrade: websocket\r\n", None),
        ("", None),
    ],
)
def test_a_request_says_whether_it_asks_for_a_websocket(tmp_path: Path, lines: str, upgrades: bool | None) -> None:
    talk = Talk(8080).send(0.02, f"GET /ws HTTP/1.1\r\nHost: a\r\n{lines}\r\n".encode())
    row = only_row(of_kind(talk.send(0.05, b"HTTP/1.1 400 Bad\r\n\r\n", back=True).analyze(tmp_path), "http"))
    assert row["upgrade_header"] is upgrades


def test_the_preface_of_http_2_names_the_flow(tmp_path: Path) -> None:
    trace = Talk(8080).send(0.02, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9)).analyze(tmp_path)
    assert only_row(trace.flows)["application"] == "http2" and not len(of_kind(trace, "http"))


def test_names_cannot_control_a_terminal(tmp_path: Path) -> None:
    talk = Talk(80).send(0.02, b"GET / HTTP/1.1\r\nHost: a\x1b[2J\xff\\\r\n\r\n")
    assert only_row(of_kind(talk.analyze(tmp_path), "http"))["name"] == "a\\027[2J\\255\\092"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (b"a" * 255, "a" * 255),
        (b"a" * 256, "a" * 255 + "…"),
        (b"\xff" * 255, "\\255" * 255),
        (b"\xff" * 300, "\\255" * 255 + "…"),
    ],
)
def test_a_name_that_is_cut_ends_in_a_mark(tmp_path: Path, name: bytes, text: str) -> None:
    """DNS names have at most 255 bytes (RFC 1035 section 2.3.4); SNI and Host may pretend more."""
    server_name = extension(0, vector(b"\0" + vector(name, 2), 2))
    for number, first in enumerate((hello(1, b"", server_name), b"GET / HTTP/1.1\r\nHost: " + name + b"\r\n\r\n")):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert only_row(Talk(443).send(0.02, first).analyze(folder).flows)["server_name"] == text


@pytest.mark.parametrize(
    ("count", "size", "mark"), [(2, 8, ""), (1, 255, ""), (40, 8, ",…"), (2, 254, ""), (4, 200, ",…")]
)
def test_a_list_of_protocols_that_is_cut_ends_in_a_mark(tmp_path: Path, count: int, size: int, mark: str) -> None:
    offers = extension(16, vector(b"".join(vector(b"x" * size, 1) for _ in range(count)), 2))
    row = only_row(Talk(443).send(0.02, hello(1, b"", offers)).analyze(tmp_path).handshakes)
    names = row["alpn"].removesuffix(mark).split(",")
    assert row["alpn"].endswith(mark) and set(names) == {"x" * size} and (len(names) < count) == bool(mark)


def test_protocols_without_room_are_cut(tmp_path: Path) -> None:
    """Escaped bytes take four times their room."""
    offers = extension(16, vector(vector(b"x" * 200, 1) + vector(b"\xff" * 255, 1), 2))
    row = only_row(Talk(443).send(0.02, hello(1, b"", offers)).analyze(tmp_path).handshakes)
    escapes = row["alpn"].removeprefix("x" * 200 + ",").removesuffix("…")
    assert row["alpn"].endswith("…") and escapes == "\\255" * (len(escapes) // 4) and len(row["alpn"].encode()) <= 1023


@pytest.mark.parametrize(
    "data", [b"\x16\3\1\xff\xff" + bytes(40), b"\0" * 90, b"SSH-2.0-x\r\n", b"GETAWAY now\r\n\r\n"]
)
def test_other_bytes_have_no_rows(tmp_path: Path, data: bytes) -> None:
    trace = Talk(443).send(0.02, data).send(0.03, data, back=True).analyze(tmp_path)
    assert not len(trace.handshakes) and not len(of_kind(trace, "http")) and not len(of_kind(trace, "dns"))


def test_answers_are_those_of_spindump() -> None:
    expected = needs.shared("labelled/spindump/trace_dns.expected").read_text().splitlines()
    times = sorted(int(line.split(" right ")[1].split()[0]) for line in expected if " measurement " in line)
    trace = wiretale.analyze(needs.shared("labelled/spindump/trace_dns.pcap"))
    assert sorted(row["waited_ns"] // 1000 for row in of_kind(trace, "dns")) == times and len(times) == 13


def test_samples_have_no_wrong_applications() -> None:
    for path in sorted(SAMPLES.glob("*.pcap*")):
        trace = wiretale.analyze(path)
        assert not {"dns", "tls", "http"} & set(trace.flows.column("application")), path.name
