# SPDX-License-Identifier: Apache-2.0
"""Requests that a server cannot read as the client means them, beside those that it does not want to answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from causes_answer_ends import BEFORE
from causes_requests import (
    BINARY,
    LATE,
    NETWORKS,
    OK,
    half_closed,
    heartbeats,
    held_handshake,
    named_members,
    open_upload,
    proxied,
    proxied_hello,
    referred,
    served,
    short_requests,
    two_families,
    unresolved,
)
from crafted import Timed, analyze_timed

SHORT, HEADED, HALF = "short-request", "proxy-header", "half-closed"
NAMELESS, BEATS = "named-unresolved", "heartbeats-missed"
OTHER, REVOCATION, NAMED, REFERRED = "other-family", "revocation-blocked", "named-elsewhere", "ldap-referral"
ALL = {SHORT, HEADED, HALF, OTHER, REVOCATION, NAMED, REFERRED, NAMELESS, BEATS}
CASES: dict[str, tuple[Timed, str | None, str, tuple[str, ...]]] = {
    "shorter than announced": (
        short_requests(),
        SHORT,
        "proven",
        ("sent 100 B less than the Content-Length of 3 HTTP requests", "it closed without an answer after 30"),
    ),
    "status 408": (short_requests(answer=LATE), SHORT, "proven", ("it answered status 408 after 30",)),
    "shorter in the second request": (
        short_requests(before=BEFORE),
        SHORT,
        "proven",
        ("sent 100 B less than the Content-Length of 3 HTTP requests", "it closed without an answer after 30"),
    ),
    "as long in the second request": (short_requests(200, before=BEFORE), None, "", ()),
    "the second request is answered before its end": (short_requests(before=BEFORE, answer=OK, wait=0.1), None, "", ()),
    "open to the end": (short_requests(is_open=True), SHORT, "likely", ("no answer came in ",)),
    "as long as announced": (short_requests(200), "closed-unanswered", "likely", ()),
    "as long as announced, and open": (short_requests(200, is_open=True), "hung-server", "", ()),
    "uploads that go on": (served(1.0) + open_upload(5.0), None, "", ()),
    "uploads that the client gives up": (short_requests(gives_up=True), None, "", ()),
    "longer than announced": (short_requests(20), "closed-unanswered", "likely", ()),
    "no length": (short_requests(None), "closed-unanswered", "likely", ()),
    "answered before the rest comes": (short_requests(answer=OK, wait=0.1), None, "", ()),
    "a PROXY header": (proxied(), HEADED, "likely", ("puts a header of the PROXY protocol before each HTTP request",)),
    "a binary one": (proxied(BINARY), HEADED, "likely", ("it answered status 400 (3 of 3)",)),
    "in its own segment": (proxied(apart=True), HEADED, "likely", ("status 400",)),
    "a PROXY header, and others without": (
        proxied(plain=2),
        HEADED,
        "proven",
        ("does not expect", "while it served 2 without"),
    ),
    "a PROXY header without an answer": (proxied(answer=b""), HEADED, "likely", ("it closed without an answer",)),
    "a PROXY header before TLS": (proxied_hello(False), HEADED, "likely", ("before each TLS handshake", "a TLS alert")),
    "a PROXY header that is wanted, and an alert of the client": (proxied_hello(True), "tls-refused", "", ("trust",)),
    "a PROXY header that is wanted": (proxied(answer=OK), None, "", ()),
    "status 400 without a header": (proxied(b""), "error-answers", "", ()),
    "a line that is no PROXY header": (proxied(b"PROXIES\r\n"), None, "", ()),
    "a FIN behind the request": (
        half_closed(),
        HALF,
        "likely",
        ("closed 3 connections without", "answered 2 requests"),
    ),
    "a FIN, and a RST": (half_closed(server="RA"), HALF, "likely", ()),
    "a FIN, and nothing else": (half_closed(0), HALF, "possible", ("possibly takes",)),
    "a FIN, and an answer": (half_closed(answer=OK), None, "", ()),
    "a service on 127.0.0.1 alone": (
        two_families(),
        OTHER,
        "proven",
        ("Nothing listens on [::1]:8080, but 127.0.0.1 serves", "3 connections came 2", "a refused SYN 4 times"),
    ),
    "on an IPv4 address of the same name": (
        two_families(NETWORKS, 1, name="app.example"),
        OTHER,
        "proven",
        ("Nothing listens on [fd00::2]:8080, but 10.2.0.2 serves", "3 connections came 1"),
    ),
    "on an address of another host": (two_families(NETWORKS, 1), "refused", "", ()),
    "on another address much later": (two_families(after=3.0), "refused", "", ()),
    "other clients at the other address": (
        two_families(NETWORKS, 1, after=0.1, name="app.example", strangers=60),
        None,
        "",
        (),
    ),
    "on another address at times": (two_families(skipped=1), "refused", "", ()),
    "a client that asks for revocation": (
        held_handshake(),
        REVOCATION,
        "likely",
        ("paused 15", "1 TLS handshake", "crl.example had left its SYNs"),
    ),
    "a client that asks hosts without a name": (held_handshake(name=""), REVOCATION, "likely", ("1 host had left",)),
    "a client that pauses long before it asks": (held_handshake(begins=4.0), "host-down", "", ()),
    "a client that asks for a moment": (held_handshake(ladder=(0.0, 1.0)), "host-down", "", ()),
    "a client that connects to another port": (held_handshake(port=8443), "host-down", "", ()),
    "a client that pauses": (held_handshake(ladder=()), None, "", ()),
    "Kafka that names the client's own address": (
        named_members(),
        NAMED,
        "likely",
        (
            "10.2.0.2:9092 answers",
            "127.0.0.1:9092, which refused 3",
            "probably this one, and there the client meets itself",
        ),
    ),
    "MongoDB that names a private address": (
        named_members("192.168.9.9", 27017),
        NAMED,
        "likely",
        ("192.168.9.9:27017, which left 3 connections unanswered", "nothing is heard of it here"),
    ),
    "a refusal long after": (named_members(begins=30.0), "refused", "", ()),
    "a silent host long after": (named_members("192.168.9.9", begins=30.0), "host-down", "", ()),
    "one member of three is down": (named_members("192.168.9.9", third=True), "host-down", "", ()),
    "a port of another service": (named_members(member_port=8080), "refused", "", ()),
    "a member of Cassandra is down": (named_members("192.168.9.9", 7000), "host-down", "", ()),
    "servers of another protocol": (named_members("192.168.9.9", 8080), "host-down", "", ()),
    "Kafka that names a host without an address": (
        unresolved(),
        NAMELESS,
        "likely",
        (
            "10.2.0.2:9092 answers, but 10.0.0.1 then looks for kafka-0.svc, which",
            "(4 lookups in 3.30 s): Kafka probably",
        ),
    ),
    "a name that resolves with a suffix": (unresolved(suffixed=0), None, "", ()),
    "a name that resolves": (unresolved(code=0), None, "", ()),
    "a name that is looked for twice": (unresolved(lookups=2), None, "", ()),
    "a name that is looked for much later": (unresolved(after=2.0), None, "", ()),
    "a name beside a database": (unresolved(port=5432), None, "", ()),
    "a name beside work with the broker": (unresolved(turns=12), None, "", ()),
    "a name beside three brokers": (unresolved(members=3), None, "", ()),
    "a client of a broker without heartbeats": (
        heartbeats(),
        BEATS,
        "likely",
        ("10.2.0.2:5672 closed 1 connection of 10.0.0.1 60", "although it kept sending"),
    ),
    "the same without a late message": (heartbeats(late=False), BEATS, "likely", ()),
    "a client that answers heartbeats": (heartbeats(answered=True), "idle-timeout", "", ()),
    "a broker that sends none either": (heartbeats(beats=0, quiet=60.0), None, "", ()),
    "a broker that closes with its last message": (heartbeats(quiet=0.01, late=False), None, "", ()),
    "the same at a web server": (heartbeats(port=80), None, "", ()),
    "a directory that refers to a host without an answer": (
        referred(),
        REFERRED,
        "likely",
        (
            "The LDAP server 10.2.0.2:389 probably refers its client to ForestDnsZones.example.com",
            "3 connections that follow it to 192.168.9.9 (9 SYNs) got no answer",
        ),
    ),
    "another name of the domain": (referred("dc2"), "host-down", "", ()),
    "another port there": (referred(port=80), "host-down", "", ()),
    "no directory before": (referred(talked=False), "host-down", "", ()),
    "a directory that refers to a host that answers": (referred(answers=True), None, "", ()),
    "requests that are answered": (served(1.0), None, "", ()),
}


@pytest.mark.parametrize("case", CASES)
def test_the_answer_says_what_the_server_could_not_read(case: str, tmp_path: Path) -> None:
    timed, cause, certainty, texts = CASES[case]
    trace = analyze_timed(tmp_path, sorted(timed, key=lambda packet: packet[0]))
    answer = trace.answer
    codes = {row["code"] for row in trace.causes}
    assert (
        answer.cause == cause
        if cause
        else not codes & {SHORT, HEADED, HALF, OTHER, REVOCATION, NAMED, REFERRED, NAMELESS, BEATS}
    ), answer.sentence
    assert not certainty or answer.certainty == certainty, answer.sentence
    assert all(text in answer.sentence for text in texts), answer.sentence
