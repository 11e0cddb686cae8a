# SPDX-License-Identifier: Apache-2.0
"""DNS, TLS and HTTP as tshark reads them: all captures of others in ../shared, and crafted ones that need no other file.

tshark needs half a second per file, so it reads those in which it found such fields (`READ`); in all others wiretale must find
none.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import application_wire as wire
import needs
import wiretale
from crafted import analyze_timed
from exchange_rows import of_kind

Row = dict[str, Any]
Facts = Counter[tuple[Any, ...]]
VERSIONS = {"0x0304": "1.3", "0x0303": "1.2", "0x0302": "1.1", "0x0301": "1.0", "0x0300": "SSL 3.0"}
CODES = ("NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED")
FIELDS = (
    *("frame.number", "tcp.stream", "frame.protocols", "udp.port"),
    *("dns.id", "dns.qry.name", "dns.flags.response", "dns.flags.rcode", "dns.time"),
    *("tls.handshake.type", "tls.handshake.extensions_server_name", "tls.handshake.extensions_alpn_str"),
    *("tls.handshake.version", "tls.handshake.extensions.supported_version"),
    *("http.request.method", "http.host", "http.response.code"),
)
FILTER = "(dns || mdns || llmnr || tls.handshake || http || http2) && !quic && !icmp && !icmpv6"
READ = (
    *("LINKTYPE_IPV4.pcap", "LINKTYPE_IPV6.pcap", "LINKTYPE_PKTAP.pcap", "LINKTYPE_RAW_ipv6.pcap"),
    *("arcnet-rfc1201-arp-icmp-http.pcap", "dns-badlabel.pcap", "dns-uri.pcap", "dns_fwdptr.pcap", "dns_tcp_8053.pcap"),
    *(
        "dns_udp_2.pcap",
        "dnssec.pcap",
        "edns-opts.pcap",
        "ipv4_tcp_http_xml_tso.pcap",
        "mptcp-aa-v1.pcap",
        "someip1.pcap",
    ),
    *("time_2038_max.pcap", "time_2039.pcap", "time_2106_max.pcap", "time_2107.pcapng"),
    *("vxlan-non-zero-reserved-fields.pcap", "dns_over_https_POST.pcap", "gtp-u-http_origin_different_than_host.pcap"),
    *("http_espn_fail.pcapng", "latency2.pcapng", "sessionhijacking.pcapng", "tls_sgt.pcap", "trace_dns.pcap"),
    "trace_quic_v22_picoquic_long.pcap",
)
# tshark alone has these facts, for the reason that stands here.
DIFFERENCES = {
    "LINKTYPE_PKTAP.pcap": ("query", "the link type is not decoded"),
    "dns-badlabel.pcap": ("answer", "opcode 15, and a name that is longer than 255 bytes"),
    "dns_fwdptr.pcap": ("answer", "opcode 15, and compression pointers that point forward"),
    "someip1.pcap": ("answer", "SOME/IP: a response of DNS without a question and a record"),
}
PORTS = {"dns_tcp_8053.pcap": ("-d", "tcp.port==8053,dns")}  # tshark knows DNS over TCP by the port alone
TREES = ("captures", "labelled")


def fields_of(path: Path, *options: str) -> Iterator[Row]:
    fields = [part for field in FIELDS for part in ("-e", field)]
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", "-E", "separator=|", "-E", "aggregator=;", *fields]
    command += ["-o", "http.desegment_body:FALSE"]  # a status counts before its body is complete
    done = subprocess.run([*command, *options, "-Y", FILTER], capture_output=True, text=True, errors="replace")
    for line in done.stdout.splitlines():
        yield dict(zip(FIELDS, line.split("|"), strict=True))


def first(text: str) -> str:
    return text.split(";")[0]


def dns_facts(row: Row) -> Iterator[tuple[Any, ...]]:
    """The queries and answers of a frame; the time of one whose packet was cut is not known to tshark."""
    frame, names, codes, times = (
        int(row["frame.number"]),
        *(row[field].split(";") for field in ("dns.qry.name", "dns.flags.rcode", "dns.time")),
    )
    for n, (number, response) in enumerate(
        zip(row["dns.id"].split(";"), row["dns.flags.response"].split(";"), strict=True)
    ):
        if response in ("0", "False"):
            yield "query", frame, int(number, 16), names[n]
        else:
            yield "answer", frame, int(number, 16), int(codes[n]), round(float(times[n]) * 1e9) if times[0] else None


def note_stream(stream: Row, row: Row) -> None:
    types = row["tls.handshake.type"].split(";")
    if "1" in types:
        stream.setdefault("sni", first(row["tls.handshake.extensions_server_name"]) or None)
        stream.setdefault("alpn", row["tls.handshake.extensions_alpn_str"].replace(";", ",") or None)
    if "2" in types:
        version = row["tls.handshake.extensions.supported_version"] or row["tls.handshake.version"]
        stream.setdefault("version", VERSIONS[first(version)])
        if alpn := row["tls.handshake.extensions_alpn_str"]:
            stream["alpn"] = alpn
    if row["http.request.method"]:
        stream.setdefault("request", (first(row["http.request.method"]), first(row["http.host"]) or None))
    for status in map(int, filter(None, row["http.response.code"].split(";"))):
        if status >= 200 or status == 101:
            stream.setdefault("status", status)


def facts_of_tshark(path: Path, *options: str) -> Facts:
    facts, streams = Counter[tuple[Any, ...]](), dict[str, Row]()
    for row in fields_of(path, *options):
        protocols = row["frame.protocols"].split(":")
        stream = streams.setdefault(row["tcp.stream"], {})
        if "mdns" in protocols:
            facts["mdns", int(row["frame.number"])] += 1
        elif "dns" in protocols and "http2" not in protocols:
            facts.update(dns_facts(row))
        elif "http2" in protocols:
            stream["http2"] = True
        note_stream(stream, row)
    for stream in streams.values():
        if "sni" in stream or "version" in stream:
            facts["tls", stream.get("sni"), stream.get("alpn"), stream.get("version")] += 1
        if "request" in stream or "status" in stream:
            facts["http", *stream.get("request", (None, None)), stream.get("status")] += 1
        facts["http2", 1] += "http2" in stream
    return +facts


def facts_of(trace: wiretale.Trace, tshark: Facts) -> Facts:
    """The same by wiretale. tshark has no time of some answers, which are then compared without it."""
    untimed = {fact[1] for fact in tshark if fact[0] == "answer" and fact[4] is None}
    facts = Counter[tuple[Any, ...]]()
    for row in of_kind(trace, "dns"):
        facts["query", row["asked_frame"], row["id"], row["name"] or "<Root>"] += 1
        if frame := row["answered_frame"]:
            time_ns = None if frame in untimed else row["waited_ns"]
            facts["answer", frame, row["id"], CODES.index(row["code"]), time_ns] += 1
    for row in trace.handshakes.rows():
        if row["protocol"] == "tls":
            facts["tls", row["server_name"], row["alpn"], row["version"]] += 1
    for row in of_kind(trace, "http"):
        facts["http", row["type"], row["name"], row["code"] and int(row["code"])] += 1
    facts["http2", 1] += trace.flows.column("application").count("http2")
    return +facts


def shared_captures(trees: Sequence[str] = TREES) -> dict[str, Path]:
    paths = [path for tree in trees for path in needs.shared(tree).rglob("*.pcap*")]
    return {path.name: path for path in paths}


def large_hello() -> wire.Talk:
    """A ClientHello of 1.8 kB, as post-quantum keys make it, in two segments."""
    keys = wire.vector(b"\x11\xec" + wire.vector(bytes(1216), 2), 2)
    first = wire.hello(1, b"s" * 32, wire.extension(51, wire.vector(keys, 2)), wire.SNI, wire.ALPN)
    talk = wire.Talk(443).send(0.02, first[:1400]).send(0.021, first[1400:], position=1400)
    talk.send(0.07, wire.hello(2, b"s" * 32, wire.IS_13) + wire.CHANGE + wire.SECRET, back=True)
    return talk.send(0.09, wire.CHANGE + wire.SECRET, position=len(first))


def hello_in_records() -> wire.Talk:
    """A ClientHello in records of 50 bytes."""
    body = wire.hello(1, b"", wire.SNI, wire.ALPN)[5:]
    first = b"".join(wire.record(22, body[at : at + 50]) for at in range(0, len(body), 50))
    return (
        wire.Talk(443)
        .send(0.02, first)
        .send(0.07, wire.hello(2, b"", wire.IS_13) + wire.SECRET, back=True)
        .send(0.09, wire.SECRET, position=len(first))
    )


def long_certificate() -> wire.Talk:
    """A handshake of TLS 1.2 whose ServerHello and certificate of 6 kB are one record."""
    first = wire.hello(1, b"", wire.SNI)
    flight = wire.record(
        22, wire.hello(2, b"t" * 32)[5:] + bytes([11]) + wire.vector(bytes(6000), 3) + bytes([14, 0, 0, 0])
    )
    talk = wire.Talk(443).send(0.02, first)
    for at in range(0, len(flight), 1400):
        talk.send(0.04 + at / 1e6, flight[at : at + 1400], back=True, position=at)
    finished = wire.CHANGE + wire.record(22, bytes(40))
    return talk.send(0.06, finished, position=len(first)).send(0.08, finished, back=True, position=len(flight))


def stream_of_questions() -> wire.Talk:
    """Five questions over one TCP connection, asked at once, and their answers."""
    names = [f"n{number}.example.org" for number in range(5)]
    questions = b"".join(wire.vector(wire.question(number, name), 2) for number, name in enumerate(names))
    answered = b"".join(wire.vector(wire.answer(number, name, code=number), 2) for number, name in enumerate(names))
    return (
        wire.Talk(53)
        .send(0.02, questions)
        .send(0.05, answered[:70], back=True)
        .send(0.06, answered[70:], back=True, position=70)
    )


def proxy_request() -> wire.Talk:
    """The first of two pipelined requests to a proxy, and 100 before its status."""
    request = b"PUT http://www.example.org/a HTTP/1.1\r\nHost: www.example.org\r\nContent-Length: 0\r\n\r\n"
    two = b"GET http://other.example/ HTTP/1.1\r\nHost: other.example\r\n\r\n"
    done = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"
    return wire.Talk(3128).send(0.02, request + two).send(0.05, done, back=True)


CRAFTED = (large_hello, hello_in_records, long_certificate, stream_of_questions, proxy_request)


@needs.TSHARK
@pytest.mark.parametrize("craft", CRAFTED)
def test_crafted_fields_are_those_of_tshark(tmp_path: Path, craft: Callable[[], wire.Talk]) -> None:
    trace = craft().analyze(tmp_path)
    tshark = facts_of_tshark(tmp_path / "crafted.pcap")
    assert tshark and facts_of(trace, tshark) == tshark


@needs.TSHARK
def test_dns_on_another_port_is_that_of_tshark(tmp_path: Path) -> None:
    timed = [
        (0.0, wire.datagram(wire.question(1), server=8600)),
        (0.02, wire.datagram(wire.answer(1, code=2), back=True, server=8600)),
        (0.03, wire.datagram(wire.question(2, "b.example"), server=8600)),
    ]
    trace = analyze_timed(tmp_path, timed)
    tshark = facts_of_tshark(tmp_path / "crafted.pcap", "-d", "udp.port==8600,dns")
    assert len(tshark) == 3 and facts_of(trace, tshark) == tshark


@needs.TSHARK
@pytest.mark.parametrize("name", READ)
def test_fields_are_those_of_tshark(name: str) -> None:
    path = shared_captures()[name]
    tshark = facts_of_tshark(path, *PORTS.get(name, ()))
    trace = wiretale.analyze(path)
    facts = facts_of(trace, tshark)
    mdns = [fact for fact in tshark if fact[0] == "mdns"]
    assert bool(mdns) == ("mdns" in trace.flows.column("application"))
    for fact in mdns:
        del tshark[fact]
    assert {fact[0] for fact in tshark - facts} == set(DIFFERENCES.get(name, ("",))[:1]) - {""}, tshark - facts
    assert (tshark or mdns) and not facts - tshark


def test_no_other_capture_has_such_fields() -> None:
    without = [path for name, path in shared_captures(["captures"]).items() if name not in READ]
    assert len(without) > 380
    for path in without:
        try:
            trace = wiretale.analyze(path)
        except wiretale.WiretaleError:
            continue
        assert not {"dns", "mdns", "llmnr", "tls", "http", "http2"} & set(trace.flows.column("application")), path.name
        assert not of_kind(trace, "dns") and not of_kind(trace, "http"), path.name
