# SPDX-License-Identifier: Apache-2.0
"""Calls, logins and boot files: each cause, and its nearest rival that is not taken for it; messages read byte by byte."""

from __future__ import annotations

from pathlib import Path

import pytest
from scapy.all import Raw

import causes_udp as drawn
import wiretale
from crafted import Timed, analyze_timed, write_timed


def codes_of(timed: Timed, folder: Path) -> list[str]:
    return [row["code"] for row in analyze_timed(folder, timed).causes if row["severity"] != "info"]


@pytest.mark.parametrize(
    ("code", "beginning"),
    [
        ("sip-no-ack", "10.0.0.2 answered a call of 10.0.0.1 and never got the ACK: it repeated its 200 OK 10 times"),
        ("sip-silent", "10.0.0.2 answers no SIP REGISTER of 10.0.0.1: 7 datagrams in 17.5 s got no response"),
        ("sip-refused", "10.0.0.2 refuses the call to 2002@10.0.0.2 of 10.0.0.1 with 488 (no common codec or media)"),
        (
            "radius-large",
            "The RADIUS server 10.0.0.4 answers all 6 small requests, but none of the 2 of 1.70 kB or more",
        ),
        ("radius-silent", "The RADIUS server 10.0.0.4 leaves 2 of 8 requests of 10.0.0.3 unanswered (bob)"),
        ("radius-rejected", "The RADIUS server 10.0.0.4 rejects mallory: 2 Access-Rejects of 10.0.0.3"),
        (
            "some-unanswered",
            "10.0.0.6:161 did not answer 3 of 20 SNMP requests of 10.0.0.1 (15%): they or the answers are probably lost on the "
            "way, or it drops them (too many, or a wrong community or user).",
        ),
        ("tftp-not-begun", "The TFTP client 10.0.0.1 never acknowledges the server's option reply (OACK)"),
    ],
)
def test_what_is_said(code: str, beginning: str, tmp_path: Path) -> None:
    answer = wiretale.analyze(drawn.EXAMPLES[code](tmp_path / "capture.pcap")).answer
    assert (answer.cause, answer.sentence[: len(beginning)]) == (code, beginning)


@pytest.mark.parametrize(
    "timed",
    [
        drawn.unacknowledged(ack_at=3.05, repeats=0),
        drawn.unacknowledged(ack_at=4.6, repeats=2),  # two copies were on the way
        drawn.deaf_server(count=2),
        drawn.deaf_server(provisional=True),  # it waits for the final response
        drawn.refused_call(486),  # busy
        drawn.refused_call(401, again=200),  # asked for the password
        drawn.refused_call(401),
        drawn.logins(0, 80),
        drawn.rejected(later=2),  # a typing error
        drawn.boot(acknowledged=7),
        drawn.boot(repeats=1),
        drawn.boot_from_dhcp(leased=False),  # the capture may have one direction
        drawn.polls(silent=()),
        drawn.polls(silent=(19,)),  # the capture ends
        drawn.polls(silent=(7, 18, 19)),  # the same, of several at once
    ],
)
def test_healthy_services(timed: Timed, tmp_path: Path) -> None:
    assert not codes_of(timed, tmp_path)


def test_a_boot_server_that_nobody_named_is_the_dhcp_server(tmp_path: Path) -> None:
    sentence = analyze_timed(tmp_path, drawn.boot_from_dhcp()).answer.sentence
    assert sentence.startswith(
        "10.1.0.1 answers no TFTP request of 10.1.4.7: 4 requests got neither a block nor an error."
    )
    assert "It is the client's DHCP server, too" in sentence


def test_a_wrong_password_is_asked_for_twice(tmp_path: Path) -> None:
    sentence = analyze_timed(tmp_path, drawn.refused_call(401, again=401)).answer.sentence
    assert "with 401 (wrong user or password) in 2 tries" in sentence


def test_a_large_request_with_an_answer_is_no_matter_of_size(tmp_path: Path) -> None:
    assert codes_of(drawn.logins(2, drawn.BIG, big=True), tmp_path) == ["radius-silent"]


def test_no_server_answers_a_boot_request(tmp_path: Path) -> None:
    sentence = analyze_timed(tmp_path, drawn.boot(answered=False)).answer.sentence
    assert sentence.startswith("10.0.0.6 answers no TFTP request of 10.0.0.1: 4 requests got neither")


def test_a_first_block_without_an_ack(tmp_path: Path) -> None:
    assert "never acknowledges the first block" in analyze_timed(tmp_path, drawn.boot(option=False)).answer.sentence


def test_exchanges_of_sip_and_radius(tmp_path: Path) -> None:
    timed = [*drawn.refused_call(401, again=200), *drawn.login(1, 7, 3, drawn.BIG), *drawn.login(2, 7, 2)]
    rows = analyze_timed(tmp_path, timed).exchanges.rows()
    assert [(row["kind"], row["type"], row["outcome"], row["code"]) for row in rows] == [
        ("sip", "INVITE", "error", "401"),
        ("sip_ack", "error", "answered", None),
        ("sip", "INVITE", "answered", "200"),
        ("sip_ack", "2xx", "answered", None),
        ("radius", "Access-Request", "refused", "Access-Reject"),
        ("radius", "Access-Request", "answered", "Access-Accept"),
    ]
    assert rows[0]["waited_ns"] == 10_000_000  # to the provisional response
    assert [row["request_bytes"] for row in rows[-2:]] == [drawn.BIG, 80]
    assert rows[-1]["name"] == "alice"


def test_an_identifier_is_used_again(tmp_path: Path) -> None:
    """The same identifier with another authenticator is another request."""
    first, second = drawn.login(0, 5, 0, tries=2), drawn.login(9, 5)
    for _, packet in second:
        packet[Raw].load = packet[Raw].load[:4] + bytes([9] * 16) + packet[Raw].load[20:]
    rows = analyze_timed(tmp_path, [*first, *second]).exchanges.rows()
    assert [(row["outcome"], row["attempts"]) for row in rows] == [("unanswered", 2), ("answered", 1)]


@pytest.mark.parametrize("message", [drawn.asks("INVITE"), drawn.tells(200), drawn.radius(1, 5), drawn.radius(2, 5)])
def test_cut_messages(message: bytes, tmp_path: Path) -> None:
    """Whatever a message is cut to, it is read without an answer that it does not have."""
    port = 5060 if b"SIP" in message else 1812
    wire = [
        (n * 0.001, drawn.ether(drawn.IP(src="10.0.0.1", dst="10.0.0.2") / drawn.UDP(sport=port, dport=port)))
        for n in range(len(message))
    ]
    timed = [(at, packet / Raw(message[:n])) for n, (at, packet) in enumerate(wire)]
    rows = wiretale.analyze(write_timed(tmp_path / "cut.pcap", timed)).exchanges.rows()
    assert all(row["answered_frame"] is None for row in rows) and len(rows) <= 2


@pytest.mark.parametrize(("port", "count"), [(5070, 1), (5090, 0)])
def test_sip_is_read_at_ports_that_count_on_from_5060(port: int, count: int, tmp_path: Path) -> None:
    timed = drawn.signals([(0.0, True, drawn.asks("OPTIONS")), (0.1, False, drawn.tells(200, "OPTIONS"))], port)
    assert len(analyze_timed(tmp_path, timed).exchanges) == count
