# SPDX-License-Identifier: Apache-2.0
"""Applications of flows by their first bytes: crafted DNS, TLS and HTTP, and the fields of tshark on captures of others."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scapy.all import DNS, DNSQR, IP, TCP, UDP, Packet, Raw

import needs
import wiretale
from checkout import SAMPLES
from crafted import analyze_timed, ether

CLIENT, SERVER = "10.0.0.1", "10.0.0.2"
SYN, SYN_ACK, PSH_ACK = "S", "SA", "PA"
Row = dict[str, Any]
Timed = list[tuple[float, Packet]]
VERSIONS = {"0x0304": "1.3", "0x0303": "1.2", "0x0302": "1.1", "0x0301": "1.0", "0x0300": "SSL 3.0"}


def datagram(message: bytes, back: bool = False, port: int = 5353, ip_id: int = 0) -> Packet:
    ends = {"src": SERVER, "dst": CLIENT} if back else {"src": CLIENT, "dst": SERVER}
    ports = {"sport": 53, "dport": port} if back else {"sport": port, "dport": 53}
    return ether(IP(id=ip_id, **ends) / UDP(**ports) / Raw(message))


def question(number: int = 7, name: str = "www.example.org", kind: str = "A") -> bytes:
    return bytes(DNS(id=number, rd=1, qd=DNSQR(qname=name, qtype=kind)))


def answer(number: int = 7, name: str = "www.example.org", kind: str = "A", code: int = 0) -> bytes:
    return bytes(DNS(id=number, qr=1, rcode=code, qd=DNSQR(qname=name, qtype=kind)))


class Talk:
    """A TCP connection whose segments have any bytes; the first byte of each stream is position 0."""

    def __init__(self, port: int, handshake: bool = True) -> None:
        self.port, self.timed = port, list[tuple[float, Packet]]()
        if handshake:
            self.timed = [(0.0, self.segment(False, -1, b"", SYN)), (0.010, self.segment(True, -1, b"", SYN_ACK))]
            self.timed.append((0.010, self.segment(False, 0, b"", "A")))

    def segment(self, back: bool, position: int, data: bytes, flags: str = PSH_ACK) -> Packet:
        ends = {"src": SERVER, "dst": CLIENT} if back else {"src": CLIENT, "dst": SERVER}
        ports = {"sport": self.port, "dport": 40000} if back else {"sport": 40000, "dport": self.port}
        isn = 9000 if back else 0xFFFFFF00
        ack = {"ack": 0xFFFFFF01 if back else 9001} if flags != SYN else {}
        return ether(IP(**ends) / TCP(seq=(isn + 1 + position) % 2**32, flags=flags, **ports, **ack) / Raw(data))

    def send(self, at: float, data: bytes, back: bool = False, position: int = 0) -> Talk:
        self.timed.append((at, self.segment(back, position, data)))
        return self

    def analyze(self, folder: Path) -> wiretale.Trace:
        return analyze_timed(folder, sorted(self.timed, key=lambda one: one[0]))


def vector(data: bytes, size: int) -> bytes:
    return len(data).to_bytes(size, "big") + data


def extension(number: int, data: bytes) -> bytes:
    return struct.pack("!H", number) + vector(data, 2)


def record(kind: int, body: bytes) -> bytes:
    return struct.pack("!BH", kind, 0x0303) + vector(body, 2)


def hello(kind: int, session: bytes, *extensions: bytes, random: bytes = bytes(32)) -> bytes:
    suites = vector(b"\x13\x01", 2) + vector(b"\0", 1) if kind == 1 else b"\x13\x01\0"
    body = b"\3\3" + random + vector(session, 1) + suites + vector(b"".join(extensions), 2)
    return record(22, bytes([kind]) + vector(body, 3))


SNI = extension(0, vector(b"\0" + vector(b"www.example.org", 2), 2))
ALPN = extension(16, vector(vector(b"h2", 1) + vector(b"http/1.1", 1), 2))
IS_13 = extension(43, b"\3\4")
CHANGE, SECRET = record(20, b"\1"), record(23, bytes(60))


def only_row(table: Any) -> Row:
    (row,) = table.rows()
    return dict(row)


def test_an_answer_belongs_to_the_first_query(tmp_path: Path) -> None:
    timed = [
        (0.0, datagram(question())),
        (1.0, datagram(question(name="WWW.example.ORG"))),
        (1.25, datagram(answer(), back=True)),
        (1.26, datagram(answer(), back=True)),
    ]
    trace = analyze_timed(tmp_path, timed)
    row = only_row(trace.queries)
    assert (row["name"], row["type"], row["sent"], row["code"]) == ("www.example.org", "A", 2, "NOERROR")
    assert row["response_ns"] == pytest.approx(1.25e9, abs=2000) and (row["first_frame"], row["response_frame"]) == (
        1,
        3,
    )
    flow = only_row(trace.flows)
    assert (flow["application"], flow["server_name"]) == ("dns", "www.example.org")


def test_a_duplicate_of_the_capture_is_no_retry(tmp_path: Path) -> None:
    timed = [(0.0, datagram(question(), ip_id=5)), (0.0001, datagram(question(), ip_id=5))]
    assert only_row(analyze_timed(tmp_path, timed).queries)["sent"] == 1


def test_questions_of_one_flow_are_distinguished(tmp_path: Path) -> None:
    timed = [
        (0.0, datagram(question(1))),
        (0.001, datagram(question(1, kind="AAAA"))),
        (0.002, datagram(question(2, name="a.b\\c.example"))),
        (0.1, datagram(answer(1, kind="AAAA", code=2), back=True)),
        (0.2, datagram(answer(1, name="other.example"), back=True)),
        (0.3, datagram(answer(2, name="a.b\\c.example", code=3), back=True)),
    ]
    rows = analyze_timed(tmp_path, timed).queries.rows()
    assert [(row["id"], row["type"], row["name"], row["code"]) for row in rows] == [
        (1, "AAAA", "www.example.org", "SERVFAIL"),
        (2, "A", "a.b\\092c.example", "NXDOMAIN"),
        (1, "A", "www.example.org", None),
    ]
    assert rows[2]["response_ns"] is None and rows[2]["sent"] == 1


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
    assert not len(trace.queries) and only_row(trace.flows)["application"] is None


def test_dns_over_tcp_in_pieces(tmp_path: Path) -> None:
    asked, answered = vector(question(), 2), vector(answer(), 2)
    talk = Talk(53).send(0.02, asked[:1]).send(0.03, asked[1:], position=1)
    talk.send(0.08, answered[:9], back=True).send(0.1, answered[9:], back=True, position=9)
    row = only_row(talk.analyze(tmp_path).queries)
    assert row["response_ns"] == pytest.approx(0.07e9, abs=2000) and row["code"] == "NOERROR"


def test_a_handshake_of_tls_1_3(tmp_path: Path) -> None:
    first = hello(1, b"s" * 32, SNI, ALPN)
    talk = Talk(443).send(0.02, first).send(0.07, hello(2, b"s" * 32, IS_13) + CHANGE + SECRET, back=True)
    talk.send(0.09, CHANGE + SECRET, position=len(first))
    trace = talk.analyze(tmp_path)
    row = only_row(trace.handshakes)
    shown = ("protocol", "version", "server_name", "alpn", "resumed", "alert", "round_trips", "frames")
    assert [row[name] for name in shown] == ["tls", "1.3", "www.example.org", "h2,http/1.1", False, None, 1, "4, 5, 6"]
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
    assert row["server_name"] == "www.example.org" and row["frames"].split(", ")[0] in {"5", "6"}


@pytest.mark.parametrize("handshake", [True, False])
def test_the_first_request_of_http(tmp_path: Path, handshake: bool) -> None:
    request = b"POST /secret HTTP/1.1\r\nUser-Agent: x\r\nhOsT:  www.example.org:8080 \r\n\r\n"
    talk = Talk(8080, handshake).send(0.02, request[:40]).send(0.03, request[40:], position=40)
    talk.send(0.05, b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\n", back=True)
    trace = talk.analyze(tmp_path)
    row = only_row(trace.requests)
    assert (row["method"], row["host"], row["status"]) == ("POST", "www.example.org:8080", 404)
    assert only_row(trace.flows)["server_name"] == "www.example.org:8080"
    assert "secret" not in str(trace.requests.rows())


def test_names_cannot_control_a_terminal(tmp_path: Path) -> None:
    talk = Talk(80).send(0.02, b"GET / HTTP/1.1\r\nHost: a\x1b[2J\xff\\\r\n\r\n")
    assert only_row(talk.analyze(tmp_path).requests)["host"] == "a\\027[2J\\255\\092"


@pytest.mark.parametrize(
    "data", [b"\x16\3\1\xff\xff" + bytes(40), b"\0" * 90, b"SSH-2.0-x\r\n", b"GETAWAY now\r\n\r\n"]
)
def test_other_bytes_have_no_rows(tmp_path: Path, data: bytes) -> None:
    trace = Talk(443).send(0.02, data).send(0.03, data, back=True).analyze(tmp_path)
    assert not len(trace.handshakes) and not len(trace.requests) and not len(trace.queries)


# --- captures of others

FIELDS = (
    *(
        "frame.number",
        "dns.time",
        "udp.port",
        "tcp.stream",
        "tls.handshake.type",
        "tls.handshake.extensions_server_name",
    ),
    *("tls.handshake.version", "tls.handshake.extensions.supported_version", "http.request.method", "http.host"),
)
CAPTURES = (
    *("labelled/spindump/trace_dns.pcap", "labelled/cases/tls_sgt.pcap", "labelled/cases/http_espn_fail.pcapng"),
    *("labelled/cases/sessionhijacking.pcapng", "labelled/cases/latency2.pcapng"),
)


def tshark_rows(path: Path) -> Iterator[Row]:
    options = [part for field in FIELDS for part in ("-e", field)]
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", "-E", "separator=|", "-E", "aggregator=;", *options]
    done = subprocess.run([*command, "-Y", "dns || tls.handshake || http"], capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        yield dict(zip(FIELDS, line.split("|"), strict=True))


def by_frame(rows: list[Row]) -> dict[int, Row]:
    return {int(frame): row for row in rows for frame in (row["frames"] or "").split(", ") if frame}


@needs.TSHARK
@pytest.mark.parametrize("name", CAPTURES)
def test_fields_are_those_of_tshark(name: str) -> None:
    path = needs.shared(name)
    trace = wiretale.analyze(path)
    answers = {row["response_frame"]: row["response_ns"] for row in trace.queries.rows()}
    handshakes, requests = by_frame(trace.handshakes.rows()), by_frame(trace.requests.rows())
    expected: list[Any] = []
    found: list[Any] = []
    streams = set[str]()
    for row in tshark_rows(path):
        frame = int(row["frame.number"])
        if row["dns.time"] and "53" in row["udp.port"].split(";"):
            expected.append(round(float(row["dns.time"]) * 1e9))
            found.append(answers.get(frame))
        if server := row["tls.handshake.extensions_server_name"]:
            expected.append((frame, server))
            found.append((frame, handshakes[frame]["server_name"]))
        if "2" in row["tls.handshake.type"].split(";"):
            version = row["tls.handshake.extensions.supported_version"] or row["tls.handshake.version"]
            expected.append((frame, VERSIONS[version.split(";")[0]]))
            found.append((frame, handshakes[frame]["version"]))
        if row["http.request.method"] and row["tcp.stream"] not in streams:
            streams.add(row["tcp.stream"])
            expected.append((frame, row["http.request.method"], row["http.host"]))
            found.append((frame, requests[frame]["method"], requests[frame]["host"]))
    assert expected and found == expected


def test_answers_are_those_of_spindump() -> None:
    expected = needs.shared("labelled/spindump/trace_dns.expected").read_text().splitlines()
    times = sorted(int(line.split(" right ")[1].split()[0]) for line in expected if " measurement " in line)
    trace = wiretale.analyze(needs.shared("labelled/spindump/trace_dns.pcap"))
    assert sorted(row["response_ns"] // 1000 for row in trace.queries.rows()) == times and len(times) == 13


def test_samples_have_no_wrong_applications() -> None:
    for path in sorted(SAMPLES.glob("*.pcap*")):
        trace = wiretale.analyze(path)
        assert not {"dns", "tls", "http"} & set(trace.flows.column("application")), path.name
