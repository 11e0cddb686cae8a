# SPDX-License-Identifier: Apache-2.0
"""Services that say no: what is said of each, and answers that refuse nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from scapy.all import IP, TCP, IPv6, Packet

import causes_refusals as drawn
import wiretale
from attempt_wire import Ends
from causes_broken import of_timed
from causes_refusals import datagrams, lines, talk
from crafted import Timed, ether

IN_FTP = ("> 220 ftp", "USER web", "> 331 p", "PASS x", "> 230 in")
CODES = {
    *(
        "bgp-closed",
        "http2-closed",
        "only-smb1",
        "service-refused",
        "time-refused",
        "tls-late-refusal",
        "tls-turned-away",
    ),
}


def trace_of(timed: Timed, folder: Path) -> wiretale.Trace:
    return wiretale.analyze(of_timed(lambda: timed)(folder / "capture.pcap"))


@pytest.mark.parametrize(
    ("timed", "words"),
    [
        (
            talk(389, drawn.ldap(8)),
            'The LDAP server 10.2.0.2 refuses the bind of svc@corp.example: it answered 10.0.0.1 "strongerAuthRequired"',
        ),
        (
            talk(445, drawn.smb_login(0xC0000022)),
            'The SMB server 10.2.0.2 refuses the login of CORP\\alice: it answered 10.0.0.1 "STATUS_ACCESS_DENIED"',
        ),
        (talk(445, [drawn.smb(0, None), drawn.smb(0, 0xC00000BB)]), "The SMB server 10.2.0.2 refuses to negotiate: "),
        (
            datagrams((40_001, 88), [*drawn.kerberos(25), *drawn.kerberos(37)], gap=0.2),
            'The Kerberos server 10.2.0.2 refuses the login of alice: it answered 10.0.0.1 "KRB_AP_ERR_SKEW" (the clocks',
        ),
        (
            talk(3306, drawn.mysql(1045, b"Access denied for user")),
            'The MySQL server 10.2.0.2 refuses the login of app: it answered 10.0.0.1 "1045 Access denied for user"',
        ),
        (
            talk(5432, drawn.postgresql(b"FATAL", b"28000", b"no pg_hba.conf entry")),
            'The PostgreSQL server 10.2.0.2 refuses the login of app: it answered 10.0.0.1 "28000 no pg_hba.conf entry"',
        ),
        (
            talk(5432, drawn.postgresql(b"FATAL", b"53300", b"remaining connection slots", before=drawn.LOGGED_IN)),
            'The PostgreSQL server 10.2.0.2 refuses the login of app: it answered 10.0.0.1 "53300 remaining connection slots" '
            "(max_connections is reached).",
        ),
        (
            talk(6432, drawn.postgresql(b"FATAL", b"08P01", b"SSL required")),
            'The PostgreSQL server 10.2.0.2 refuses the login of app: it answered 10.0.0.1 "08P01 SSL required"',
        ),
        (
            talk(21, lines(*IN_FTP, "PORT 127,0,0,1,200,1", "> 500 I won't open a connection to 127.0.0.1")),
            "The FTP server 10.2.0.2 refuses a command at PORT: it answered 10.0.0.1 \"500 I won't open",
        ),
        (
            talk(179, drawn.bgp(4, 0)),
            'The router 10.2.0.2 ended the BGP session with 10.0.0.1 by a NOTIFICATION, "hold timer expired": it got no '
            "KEEPALIVE or UPDATE of 10.0.0.1 within the hold time.",
        ),
        (
            talk(179, drawn.bgp(2, 2, by_client=True)),
            'The router 10.0.0.1 ended the BGP session with 10.2.0.2 by a NOTIFICATION, "bad peer AS": the AS of 10.2.0.2 is not '
            "the one that 10.0.0.1 has for it.",
        ),
        (
            talk(179, drawn.bgp(3, 77)),
            'The router 10.2.0.2 ended the BGP session with 10.0.0.1 by a NOTIFICATION, "UPDATE mess',
        ),
        (
            talk(
                25,
                lines(
                    "> 220 mx",
                    "EHLO a",
                    "> 250 mx",
                    "MAIL FROM:<a@b>",
                    "> 250 ok",
                    "RCPT TO:<c@d>",
                    "> 550 5.1.1 no such user",
                ),
            ),
            'The mail server 10.2.0.2 refuses mail at RCPT TO:<c@d>: it answered 10.0.0.1 "550 5.1.1 no such user"',
        ),
        (talk(25, lines("> 421 4.7.0 too many connections")), "The mail server 10.2.0.2 refuses connections: "),
        (
            [*talk(25, lines("> 421 too many")), *talk(25, lines("> 220 mx", "EHLO a", "> 250 mx"), 15.0, 40_001)],
            'The mail server 10.2.0.2 refuses connections: it answered 10.0.0.1 "421 too many".',
        ),
        (
            talk(21, lines("> 220 ftp", "USER web", "> 331 password", "PASS secret", "> 530 Login incorrect.")),
            'The FTP server 10.2.0.2 refuses a command at PASS: it answered 10.0.0.1 "530 Login incorrect."',
        ),
        (
            datagrams((500, 500), [*drawn.negotiation(14), *drawn.negotiation(14, 2)]),
            'The IPsec server 10.2.0.2 refuses the IKE negotiation: it answered 10.0.0.1 "NO_PROPOSAL_CHOSEN" 2 times',
        ),
        (drawn.boot(8, b"no", True), "The TFTP client 10.0.0.1 refuses what 10.2.0.2 offers for pxelinux.0: "),
        (
            drawn.boot(1, b"File not found"),
            'The TFTP server 10.2.0.2 refuses the file pxelinux.0: it answered 10.0.0.1 "1 File',
        ),
        (
            talk(502, drawn.modbus(2, 2, 2)),
            "The Modbus server 10.2.0.2 refuses requests with function 3, unit 1, address 100: it answered 10.0.0.1 "
            '"2 illegal data address" 3 times',
        ),
        (
            drawn.cut_short(445, drawn.smb_1(b"PC NETWORK PROGRAM 1.0", b"NT LM 0.12")),
            "10.0.0.1 offers 10.2.0.2 no later version than SMB 1, and the server resets the connection without an answer",
        ),
        (
            talk(1433, drawn.sql_server(18456)),
            'The Microsoft SQL server 10.2.0.2 refuses the login of sa: it answered 10.0.0.1 "18456 Login failed for user',
        ),
        (
            talk(1521, drawn.oracle(11, 4)),
            'The Oracle server 10.2.0.2 refuses the connection to SHOP: it answered 10.0.0.1 "ORA-12514" (the listener does',
        ),
        (
            talk(143, lines("> * OK ready", 'a1 LOGIN "bob" secret', "> a1 NO [AUTHENTICATIONFAILED] no")),
            'The IMAP server 10.2.0.2 refuses the login of bob: it answered 10.0.0.1 "NO [AUTHENTICATIONFAILED] no"',
        ),
        (
            talk(5672, drawn.amqp(403, b"ACCESS_REFUSED")),
            'The AMQP server 10.2.0.2 refuses connections: it answered 10.0.0.1 "403 ACCESS_REFUSED"',
        ),
        (
            talk(1080, drawn.socks(2)),
            'The SOCKS server 10.2.0.2 refuses connections to a.example: it answered 10.0.0.1 "2 not allowed by rules"',
        ),
        (
            talk(27017, drawn.mongodb(b"AuthenticationFailed")),
            'The MongoDB server 10.2.0.2 refuses commands: it answered 10.0.0.1 "AuthenticationFailed"',
        ),
        (drawn.portmap(0), 'The portmapper server 10.2.0.2 refuses the port of NFS: it answered 10.0.0.1 "port 0"'),
        (
            talk(50_051, drawn.goaway(11, b"too_many_pings", drawn.PING_ACK)),
            '10.2.0.2 ended the HTTP/2 connection with 10.0.0.1 by GOAWAY, "ENHANCE_YOUR_CALM too_many_pings": 10.0.0.1 sends '
            "keep-alive pings more often than it allows.",
        ),
        (
            drawn.handshake(drawn.ALERT, by_server=True),
            "The server 10.2.0.2:443 probably refused the connection of 10.0.0.1 in an encrypted alert, right behind the",
        ),
        (
            drawn.handshake(drawn.ALERT, by_server=True, before=drawn.NO_CERTIFICATE),
            "The server 10.2.0.2:443 probably refused the connection of 10.0.0.1 in an encrypted alert, right behind the",
        ),
        (
            drawn.handshake(is_complete=False),
            "The client 10.0.0.1 closed the TLS handshake with 10.2.0.2:443 right after the server's messages, without an alert",
        ),
        (drawn.ntp(3, 16), "The NTP server 10.2.0.2 is not synchronized itself: all 4 answers to 10.0.0.1 say "),
        (drawn.ntp(0, 0, word=b"RATE"), "The NTP server 10.2.0.2 sends its clients away: "),
    ],
)
def test_a_refusal_is_told_in_the_words_of_the_service(timed: Timed, words: str, tmp_path: Path) -> None:
    assert trace_of(timed, tmp_path).answer.sentence.startswith(words)


@pytest.mark.parametrize(
    "timed",
    [
        talk(389, drawn.ldap(0)),
        talk(389, drawn.ldap(14)),  # a step of SASL
        [*talk(389, drawn.ldap(49)), *talk(389, drawn.ldap(0), 15.0, 40_001)],  # a second try was right
        talk(445, drawn.smb_login(0)),
        datagrams((40_001, 88), [*drawn.kerberos(25), *drawn.kerberos(None)], gap=0.2),
        talk(3306, drawn.mysql(0, b"")),
        talk(5432, drawn.postgresql(b"ERROR", b"42601", b"syntax error")),  # of a query
        talk(5432, drawn.postgresql(b"ERROR", b"42601", b"syntax error", before=drawn.LOGGED_IN)),
        talk(25, lines("> 220 mx", "EHLO a", "> 502 unknown", "HELO a", "> 250 mx", "QUIT", "> 221 bye")),
        talk(21, lines("> 220 ftp", "USER web", "> 331 p", "PASS x", "> 230 in", "MDTM a", "> 550 no such file")),
        datagrams((500, 500), [*drawn.negotiation(17), *drawn.negotiation(None, 2)]),  # another DH group
        drawn.boot(0, b"TFTP Aborted", True, then=True),  # asked for the size alone
        drawn.boot(1, b"File not found", then=True),  # the next name is there
        talk(502, drawn.modbus(0, 0)),
        talk(502, drawn.modbus(6, 0)),  # busy at first
        talk(502, drawn.modbus(5, 5)),  # accepted, and still at work
        datagrams((40_001, 88), drawn.kerberos(68), gap=0.2),  # another server knows the name
        talk(25, lines("> 220 mx", "STARTTLS", "> 454 not now", "MAIL FROM:<a@b>", "> 250 ok")),  # in clear
        drawn.cut_short(445, drawn.smb_1(b"NT LM 0.12", b"SMB 2.002")),
        drawn.cut_short(445, [drawn.smb(0, None)]),
        drawn.ntp(0, 2),
        drawn.ntp(3, 16, count=1),
        Ends(40_000, 445).refused(0.0),
        talk(21, lines("> 220 ftp", "AUTH TLS", "> 530 log in first", "USER web", "> 331 p", "PASS x", "> 230 in")),
        talk(25, lines("> 220 mx", "EHLO a", "> 250 mx", "VRFY root", "> 502 no", "MAIL FROM:<a@b>", "> 250 ok")),
        [
            *talk(445, drawn.smb_login(0xC0000022, "")),
            *talk(445, drawn.smb_login(0), 15.0, 40_001),
        ],  # first without a name
        talk(6380, lines("PING", "> -NOAUTH no")),  # no port of a known service
        talk(21, lines(*IN_FTP, "EPRT |1|10.0.0.1|51201|", "> 500 unknown", "PORT 10,0,0,1,200,1", "> 200 ok")),
        talk(6433, drawn.postgresql(b"FATAL", b"08P01", b"SSL required")),
        talk(179, drawn.bgp(0, 0)),
        talk(1433, drawn.sql_server(0)),
        talk(1433, drawn.sql_server(208)),  # of a query
        talk(1521, drawn.oracle(11, 2)),
        talk(
            143,
            lines("> * OK ready", "a1 LOGIN bob secret", "> * CAPABILITY IMAP4rev1\r\na1 OK in", "a2 X", "> a2 BAD x"),
        ),
        talk(5672, drawn.amqp(0)),
        talk(5672, drawn.amqp(200, b"Goodbye")),
        talk(1080, drawn.socks(0)),
        talk(27017, drawn.mongodb(b"NamespaceNotFound")),
        drawn.portmap(2049),
        talk(50_051, drawn.goaway(0)),  # the server only wants a new connection
        talk(50_051, drawn.goaway(11, before=b"\0\0\x40\7\0\0\0\0\0")),  # no frames: the first one is cut
        talk(50_051, drawn.goaway(11, before=b"\0\0\0\1" + bytes(5))),  # no frames: headers of no stream
        drawn.handshake(drawn.TICKET, by_server=True),
        drawn.handshake(drawn.ALERT),  # the client closes
        drawn.handshake(),
        drawn.idle_close(),
        drawn.unfinished(),
    ],
)
def test_what_is_granted_later_or_usual_is_no_refusal(timed: Timed, tmp_path: Path) -> None:
    assert not CODES & set(trace_of(timed, tmp_path).causes.column("code"))


def test_a_client_ends_http2_over_ipv6(tmp_path: Path) -> None:
    timed = [
        (at, ether(in_ipv6(packet))) for at, packet in talk(50_051, drawn.goaway(3, b"HTTP_1_1_REQUIRED", back=False))
    ]
    (row,) = trace_of(timed, tmp_path).causes.rows()
    assert (row["place"], row["filter"]) == ("client", "http2.type == 7 && ipv6.src == fd00::1")
    assert "sent more than its window allows" in row["sentence"]


def in_ipv6(packet: Packet) -> Packet:
    addresses = {"10.0.0.1": "fd00::1", "10.2.0.2": "fd00::2"}
    tcp = packet[TCP].copy()
    del tcp.chksum
    return IPv6(src=addresses[packet[IP].src], dst=addresses[packet[IP].dst]) / tcp


def test_a_single_refusal_beside_others_that_are_accepted_is_a_note(tmp_path: Path) -> None:
    timed = [*talk(389, drawn.ldap(49)), *talk(389, drawn.ldap(0, b"other@corp.example"), 15.0, 40_001)]
    (row,) = trace_of(timed, tmp_path).causes.rows()
    assert (row["code"], row["severity"]) == ("service-refused", "info")


def test_what_is_mostly_accepted_and_a_missing_service_name_are_no_failure(tmp_path: Path) -> None:
    words = ["> 220 mx", "EHLO a", "> 250 mx"]
    for number in range(6):
        words += [f"RCPT TO:<{number}@d>", "> 550 no such user" if number > 3 else "> 250 ok"]
    mail, phone = talk(25, lines(*words)), drawn.phone()
    for timed, severity in ((mail, "info"), (phone, "info"), (drawn.ticket(7), "warning")):
        (row,) = trace_of(timed, tmp_path).causes.rows()
        assert (row["code"], row["severity"], row["failed"]) == (
            "service-refused",
            severity,
            2 if severity == "info" else None,
        )


def test_no_password_is_kept(tmp_path: Path) -> None:
    words = lines("> 220 mx", "AUTH PLAIN c2VjcmV0", "> 535 no", "> 220 x")
    timed = [
        *talk(21, lines("> 220 ftp", "USER web", "> 331 p", "PASS secret", "> 530 no")),
        *talk(25, words, 13.0, 40_001),
    ]
    texts = str([row for row in trace_of(timed, tmp_path).exchanges.rows() if row["kind"] == "service"])
    assert "PASS" in texts and "AUTH" in texts and "secret" not in texts and "c2Vj" not in texts


@pytest.mark.parametrize(
    ("spoken", "waits"),
    [(("> 421 mx too busy",), [None]), (("> 220 mx", "EHLO a", "> 421 mx too busy"), [20.0])],
)
def test_nobody_waits_for_a_server_that_speaks_first(
    spoken: tuple[str, ...], waits: list[float | None], tmp_path: Path
) -> None:
    trace = trace_of(talk(25, lines(*spoken)), tmp_path)
    rows = [row for row in trace.exchanges.rows() if row["kind"] == "service"]
    assert [row["waited_ns"] and row["waited_ns"] / 1e6 for row in rows] == waits


@pytest.mark.parametrize(
    ("timed", "is_told"),
    [(drawn.web_sockets(15.0), True), (drawn.web_sockets(90.0), False), (drawn.web_sockets(15.0, b"200 OK"), False)],
)
def test_a_web_socket_that_a_timer_closes(timed: Timed, is_told: bool, tmp_path: Path) -> None:
    """Its client wants it, also if it connects again only later."""
    answer = trace_of(timed, tmp_path).answer
    assert (answer.cause == "closed-by-timer") == is_told
