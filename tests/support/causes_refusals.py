# SPDX-License-Identifier: Apache-2.0
"""Services that say no: requests and answers of one message each, crafted byte by byte."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from scapy.all import IP, TCP, UDP, Packet, Raw

from attempt_wire import RTT, Ends
from causes_broken import of_timed
from crafted import Timed, ether, tls_handshake

CLIENT, SERVER = "10.0.0.1", "10.2.0.2"
START = 10.0  # s


class Said(NamedTuple):
    """A message of the client, or back."""

    data: bytes
    back: bool = False


def talk(server_port: int, words: Sequence[Said], at: float = START, port: int = 40_000) -> Timed:
    """A connection that carries these messages and ends with both FINs."""
    ends = Ends(port, server_port)
    timed, sent, now = [ends.syn(at), *ends.accepts(at + RTT)], [1001, 5001], at + RTT + 0.001
    for word in words:
        timed.append(ends.segment(now, word.back, "PA", data=word.data, seq=sent[word.back], ack=sent[not word.back]))
        sent[word.back] += len(word.data)
        now += RTT
    for back in (False, True):
        timed.append(ends.segment(now, back, "FA", seq=sent[back], ack=sent[not back]))
        sent[back] += 1
        now += RTT
    return timed


def datagrams(ports: tuple[int, int], words: Sequence[Said], at: float = START, gap: float = RTT) -> Timed:
    """Datagrams of a client and a server, one after another."""
    timed: Timed = []
    for number, word in enumerate(words):
        ends, pair = ((SERVER, CLIENT), ports[::-1]) if word.back else ((CLIENT, SERVER), ports)
        packet = IP(src=ends[0], dst=ends[1]) / UDP(sport=pair[0], dport=pair[1]) / Raw(word.data)
        timed.append((at + gap * number, ether(packet)))
    return timed


def ber(tag: int, contents: bytes) -> bytes:
    size = len(contents)
    return bytes([tag, size] if size < 128 else [tag, 0x82, size >> 8, size & 255]) + contents


def ldap(result: int, name: bytes = b"svc@corp.example") -> list[Said]:
    bind = ber(0x30, ber(2, b"\1") + ber(0x60, ber(2, b"\3") + ber(4, name) + ber(0x80, b"secret")))
    answer = ber(0x30, ber(2, b"\1") + ber(0x61, ber(10, bytes([result])) + ber(4, b"") + ber(4, bytes(140))))
    return [Said(bind), Said(answer, True)]


def smb(command: int, status: int | None, body: bytes = bytes(24), number: int = 0) -> Said:
    """A request, or with a status the answer."""
    back = status is not None
    head = b"\xfeSMB" + struct.pack("<HHIHHIIQIIQ", 64, 1, status or 0, command, 1, int(back), 0, number, 0, 0, 0)
    message = head + bytes(16) + body
    return Said(struct.pack("!I", len(message)) + message, back)


def ntlm(user: str, domain: str = "CORP") -> bytes:
    texts = [word.encode("utf-16le") for word in (domain, user)]
    fields, offset = b"", 64
    for text in (b"", b"", *texts):
        fields += struct.pack("<HHI", len(text), len(text), offset)
        offset += len(text)
    return bytes(24) + b"NTLMSSP\0" + struct.pack("<I", 3) + fields.ljust(52, b"\0") + b"".join(texts)


def smb_login(status: int, user: str = "alice") -> list[Said]:
    return [
        smb(0, None),
        smb(0, 0),
        smb(1, None, number=1),
        smb(1, 0xC0000016, number=1),
        smb(1, None, ntlm(user, "CORP" if user else ""), 2),
        smb(1, status, number=2),
    ]


def smb_1(*dialects: bytes) -> list[Said]:
    """A negotiation of SMB 1 with these dialects."""
    names = b"".join(b"\2" + dialect + b"\0" for dialect in dialects)
    message = b"\xffSMB\x72" + bytes(27) + b"\0" + struct.pack("<H", len(names)) + names
    return [Said(struct.pack("!I", len(message)) + message)]


def cut_short(server_port: int, words: Sequence[Said], at: float = START) -> Timed:
    """A connection that the server resets after these messages."""
    ends, timed = Ends(40_000, server_port), talk(server_port, words, at)[:-2]
    sent = 1001 + sum(len(word.data) for word in words)
    return [*timed, ends.segment(timed[-1][0] + RTT, True, "RA", seq=5001, ack=sent)]


def modbus(*codes: int) -> list[Said]:
    """Requests for registers, with an exception, or 0 for data."""
    words = []
    for number, code in enumerate(codes):
        words.append(Said(struct.pack("!HHHBBHH", number, 0, 6, 1, 3, 100, 2)))
        reply = struct.pack("!BB", 0x83, code) if code else struct.pack("!BBHH", 3, 4, 7, 8)
        words.append(Said(struct.pack("!HHHB", number, 0, len(reply) + 1, 1) + reply, True))
    return words


def kerberos(error: int | None, name: bytes = b"alice") -> list[Said]:
    principal = ber(0x30, ber(0xA0, ber(2, b"\1")) + ber(0xA1, ber(0x30, ber(0x1B, name))))
    request = ber(0x6A, ber(0x30, ber(0xA1, ber(2, b"\5")) + ber(0xA4, ber(0x30, ber(0xA1, principal)))))
    number = ber(0xA6, ber(2, bytes([error or 0])))
    answer = (
        ber(0x6B, ber(0x30, bytes(20))) if error is None else ber(0x7E, ber(0x30, ber(0xA0, ber(2, b"\5")) + number))
    )
    return [Said(request), Said(answer, True)]


def ticket(error: int) -> Timed:
    """A ticket for a service that no account has, asked for twice."""
    (request, answer), timed = kerberos(error), list[tuple[float, Packet]]()
    for number in range(2):
        asks = request.data.replace(b"\x6a", b"\x6c", 1).replace(b"\xa1", b"\xa3") + bytes([number])
        timed += datagrams((40_002 + number, 88), [Said(asks), answer], START + number)
    return timed


def mysql(error: int, text: bytes) -> list[Said]:
    def packet(number: int, data: bytes) -> bytes:
        return struct.pack("<I", len(data))[:3] + bytes([number]) + data

    login = struct.pack("<IIB", 0x1FF3A685, 1 << 24, 33) + bytes(23) + b"app\0"
    reply = b"\xff" + struct.pack("<H", error) + b"#28000" + text if error else bytes(7)
    return [Said(packet(0, b"\x0a8.0.36\0" + bytes(60)), True), Said(packet(1, login)), Said(packet(2, reply), True)]


#: the last two steps of a login by SCRAM: its proof, and that the client is in
LOGGED_IN = b"R" + struct.pack("!II", 12, 12) + b"v=ab" + b"R" + struct.pack("!II", 8, 0)


def postgresql(severity: bytes, code: bytes, text: bytes, before: bytes = b"") -> list[Said]:
    """An error after the start of a session; `before`: what the server says in the same segment."""
    pairs = b"user\0app\0database\0shop\0\0"
    start = struct.pack("!II", 8 + len(pairs), 0x30000) + pairs
    fields = b"S" + severity + b"\0C" + code + b"\0M" + text + b"\0\0"
    return [Said(start), Said(before + b"E" + struct.pack("!I", 4 + len(fields)) + fields, True)]


def lines(*words: str) -> list[Said]:
    """`> ` before what the server says."""
    return [Said(f"{word.removeprefix('> ')}\r\n".encode(), word.startswith("> ")) for word in words]


def ntp(leap: int, stratum: int, count: int = 4, word: bytes = bytes(4)) -> Timed:
    timed: Timed = []
    for number in range(count):
        tail = bytes(28) + struct.pack("!II", 0xEE000000 + number, 7)
        answer = bytes([leap << 6 | 4 << 3 | 4, stratum, 6, 0xEC]) + bytes(8) + word + tail + bytes(0)
        words = [
            Said(bytes([0x23, 0, 6, 0xEC]) + bytes(8) + bytes(4) + tail[:32].ljust(32, b"\0")),
            Said(answer.ljust(48, b"\0"), True),
        ]
        timed += datagrams((50_123, 123), words, START + 16.0 * number)
    return timed


def ike(next_payload: int, kind: int, back: bool, body: bytes, spi: int = 1) -> Said:
    head = struct.pack("!QQ", spi << 40, 9 if back or kind == 35 else 0)
    head += bytes([next_payload, 0x20, kind, 0x20 if back else 8]) + struct.pack("!II", kind == 35, 28 + len(body))
    return Said(head + body, back)


def negotiation(notify: int | None, spi: int = 1) -> list[Said]:
    """A request to begin, and its answer: a notification, or a choice."""
    note = struct.pack("!BBHBBH", 0, 0, 8, 0, 0, notify or 0)
    answer = ike(33, 34, True, bytes(200), spi) if notify is None else ike(41, 34, True, note, spi)
    return [ike(33, 34, False, bytes(200), spi), answer]


def boot(code: int, text: bytes, by_client: bool = False, then: bool = False) -> Timed:
    """A client asks for a file twice, and one of both refuses; `then`: another file comes."""
    timed: Timed = []
    for number in range(2):
        at, port = START + 2.0 * number, 2_070 + number
        timed += datagrams((port, 69), [Said(b"\0\1pxelinux.0\0octet\0blksize\x001456\0")], at)
        error = Said(struct.pack("!HH", 5, code) + text + b"\0", not by_client)
        timed += datagrams((port, 34_000 + number), [error], at + 0.01)
    if then:
        timed += datagrams((2_080, 69), [Said(b"\0\1default\0octet\0")], START + 5)
        timed += datagrams((2_080, 35_000), [Said(b"\0\3\0\1" + bytes(200), True), Said(b"\0\4\0\1")], START + 5.01)
    return timed


def phone() -> Timed:
    """A phone asks for six files, of which the last two, which it may lack, are not there."""
    timed: Timed = []
    for number in range(6):
        at, port = START + 2.0 * number, 2_070 + number
        timed += datagrams((port, 69), [Said(b"\0\1file%d.xml\0octet\0" % number)], at)
        reply = b"\0\5\0\1File not found\0" if number > 3 else b"\0\3\0\1" + bytes(200)
        words = [Said(reply, True), *([] if number > 3 else [Said(b"\0\4\0\1")])]
        timed += datagrams((port, 34_000 + number), words, at + 0.01)
    return timed


def bgp(code: int, subcode: int, by_client: bool = False) -> list[Said]:
    """Both routers open a session, keep it alive, and one ends it by a NOTIFICATION, in the segment of another message."""

    def message(kind: int, body: bytes = b"") -> bytes:
        return b"\xff" * 16 + struct.pack("!HB", 19 + len(body), kind) + body

    opens = message(1, struct.pack("!BHH4sB", 4, 65_001, 180, b"\n\0\0\1", 0))
    alive, ends = message(4), message(3, bytes([code, subcode]))
    talks = [Said(opens), Said(opens + alive, True), Said(alive), Said(alive, True)]
    return [*talks, Said(alive + ends, not by_client)] if code else talks


def sql_server(*errors: int) -> list[Said]:
    """A login whose request is in clear, and an error, or the login's success."""
    user, text = "sa".encode("utf-16le"), "Login failed for user 'sa'.".encode("utf-16le")

    def packet(kind: int, body: bytes) -> bytes:
        return struct.pack("!BBHHBB", kind, 1, 8 + len(body), 0, 1, 0) + body

    words = [Said(packet(0x10, bytes(40) + struct.pack("<HH", 94, len(user) // 2) + bytes(50) + user))]
    for error in errors:
        body = struct.pack("<IBBH", error, 1, 14, len(text) // 2) + text + bytes(7)
        token = b"\xaa" + struct.pack("<H", len(body)) + body if error else b"\xad" + bytes(40)
        words.append(Said(packet(4, token), True))
    return words


def oracle(*replies: int) -> list[Said]:
    """A connection that a listener refuses (4), accepts (2), or wants to hear of again (11)."""

    def packet(kind: int, body: bytes) -> bytes:
        return struct.pack("!HHBBH", 8 + len(body), 0, kind, 0, 0) + body

    words = []
    for reply in replies:
        words.append(Said(packet(1, bytes(50) + b"(DESCRIPTION=(CONNECT_DATA=(SERVICE_NAME=SHOP)))")))
        words.append(Said(packet(reply, b"\x22\0\0\x40(DESCRIPTION=(ERR=12514)(ERROR_STACK=))"), True))
    return words


def amqp(code: int, text: bytes = b"") -> list[Said]:
    """A connection that a broker opens, or closes with a code."""
    method = struct.pack("!HHHB", 10, 50, code, len(text)) + text + bytes(4) if code else struct.pack("!HHB", 10, 41, 0)
    return [Said(b"AMQP\0\0\x09\1"), Said(struct.pack("!BHI", 1, 0, len(method)) + method + b"\xce" * 4, True)]


def socks(reply: int) -> list[Said]:
    return [
        Said(b"\5\1\0\0"),
        Said(b"\5\1\0\3\x09a.example\1\xbb"),
        Said(bytes([5, reply, 0, 1]) + bytes(6), True),
    ]


def mongodb(name: bytes) -> list[Said]:
    fields = b"\2codeName\0" + struct.pack("<I", len(name) + 1) + name + b"\0\0"
    return [Said(struct.pack("<iiiiI", 25 + len(fields), 1, 7, 2013, 0) + b"\0" + bytes(4) + fields, True)]


def portmap(port: int) -> Timed:
    call = struct.pack("!10I", 7, 0, 2, 100_000, 2, 3, 0, 0, 0, 0) + struct.pack("!4I", 100_003, 3, 6, 0)
    return datagrams((800, 111), [Said(call), Said(struct.pack("!7I", 7, 1, 0, 0, 0, 0, port), True)])


def goaway(error: int, text: bytes = b"", before: bytes = b"", back: bool = True) -> list[Said]:
    """A preface and settings, and a GOAWAY of the server, or of the client, behind other frames."""
    settings = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
    end = (8 + len(text)).to_bytes(3, "big") + bytes([7, 0, 0, 0, 0, 0]) + struct.pack("!II", 1, error) + text
    return [Said(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings), Said(settings, True), Said(before + end, back)]


PING_ACK = bytes([0, 0, 8, 6, 1, 0, 0, 0, 0]) + bytes(8)


def closed(timed: Timed, by_server: bool, server_port: int, port: int = 40_000, wait: float = 0.0) -> Timed:
    """The same connection, of which an end closes first after a wait, and sends the last ACK."""
    (at, first), (_, second) = timed[-2:]
    packets, at = ([second, first] if by_server else [first, second]), at + wait
    tcp = [packet[TCP] for packet in packets]
    last = Ends(port, server_port).segment(at + 2 * RTT, by_server, "A", seq=tcp[0].seq + 1, ack=tcp[1].seq + 1)
    return [*timed[:-2], (at, packets[0]), (at + RTT, packets[1]), last]


def handshake(*behind: Said, is_complete: bool = True, by_server: bool = False, before: bytes = b"") -> Timed:
    """A TLS 1.3 handshake, what the client sends before its Finished, that or not, what follows, and the FINs of both."""
    hello, answer, finished = [load for _, packet in tls_handshake(0.0) if (load := bytes(packet[TCP].payload))]
    words = [Said(hello), Said(answer, True), *([Said(before + finished)] if is_complete else []), *behind]
    return closed(talk(443, words), by_server, 443)


def web_sockets(again: float, status: bytes = b"101 Switching Protocols", count: int = 3) -> Timed:
    """Connections on which the server closes 60 s after the last message; the client opens the next one a time later."""
    words = [Said(b"GET /chat HTTP/1.1\r\nHost: a\r\n\r\n"), Said(b"HTTP/1.1 " + status + b"\r\n\r\n", True)]
    talks = ((START + n * (60.0 + again), 40_000 + n) for n in range(count))
    return [packet for at, port in talks for packet in closed(talk(80, words, at, port), True, 80, port, 60.0)]


ALERT = Said(b"\x17\3\3\0\x13" + bytes(19), True)
NO_CERTIFICATE = b"\x17\3\3\0\x19" + bytes(25)
TICKET = Said(b"\x17\3\3\0\xc8" + bytes(200), True)


def idle_close(wait: float = 5.0) -> Timed:
    """A server without tickets that closes because no request comes: its alert is a farewell."""
    timed = handshake(ALERT, by_server=True)
    return [(at + wait * (number >= len(timed) - 4), packet) for number, (at, packet) in enumerate(timed)]


def unfinished() -> Timed:
    """A client that waits in vain for the server's certificate, which the server repeats, and closes then."""
    timed = handshake(is_complete=False)
    sent = next(n for n, (_, packet) in enumerate(timed) if packet[IP].src == SERVER and packet[TCP].payload)
    at, answer = timed[sent]
    lost = answer.copy()
    lost[TCP].seq += len(answer[TCP].payload)
    repeats = [(at + wait, lost.copy()) for wait in (0.001, 0.4, 1.2, 2.8)]
    return [*timed[: sent + 1], *repeats, *((at + 4.0, packet) for at, packet in timed[sent + 1 :])]


EXAMPLES = {
    "bgp-closed": of_timed(lambda: talk(179, bgp(4, 0))),
    "http2-closed": of_timed(lambda: talk(50_051, goaway(11, b"too_many_pings", PING_ACK))),
    "tls-late-refusal": of_timed(lambda: handshake(ALERT, by_server=True)),
    "tls-turned-away": of_timed(lambda: handshake(is_complete=False)),
    "service-refused": of_timed(lambda: talk(389, ldap(8))),
    "only-smb1": of_timed(lambda: cut_short(445, smb_1(b"NT LM 0.12"))),
    "time-refused": of_timed(lambda: ntp(3, 16)),
}
