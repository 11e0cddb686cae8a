# SPDX-License-Identifier: Apache-2.0
"""Requests that nobody answered, and what looks like them: uploads, link-way services, long_poll requests, lost requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import wiretale
from plain_wire import ACK, FIN, PSH, Connection, Wire

RTT = 20.0
END_MS = 60_000.0


def request(link: Connection, ms: float, at: int = 0, acked: bool = True, ack: int = 0) -> Connection:
    link.send(ms, 0, at, 200, PSH | ACK, ack=ack)
    return link.ack(ms + RTT, at + 200) if acked else link


def unanswered_in(wire: Wire, tmp_path: Path) -> list[Any]:
    """The findings about requests without an answer, in a capture of a minute."""
    for ms in (END_MS - 1, END_MS):
        wire.udp(ms, b"end of the capture")
    trace = wiretale.analyze(wire.write(tmp_path / "capture.pcap"))
    return [row for row in trace.findings.rows() if row["code"] == "request-unanswered"]


def test_a_server_that_hangs_is_named_with_the_wait(tmp_path: Path) -> None:
    wire = Wire()
    for i in range(3):
        request(Connection(wire, 40_001 + i).open(1_000.0 * i), 1_000.0 * i + 30)
    (row,) = unanswered_in(wire, tmp_path)
    assert (row["severity"], row["failed"], row["members"], row["flow"]) == ("warning", 3, 3, None)
    assert row["sentence"] == (
        "The server 10.0.0.2:80 never answered 3 requests, although it acknowledged them: the client waited 58 s to 60 s until "
        "the capture ended."
    )
    assert row["waited_ns"] == pytest.approx((END_MS - 30) * 1e6, rel=1e-3)  # the waits overlap


def test_clients_that_gave_up_have_their_timeout_named(tmp_path: Path) -> None:
    wire = Wire()
    for i in range(4):
        start = 5_000.0 * i
        link = request(Connection(wire, 40_001 + i).open(start), start + 30)
        link.send(start + 2_030, 0, 200, 0, FIN | ACK, ack=0).send(start + 2_050, 1, 0, 0, FIN | ACK, ack=201)
    (row,) = unanswered_in(wire, tmp_path)
    assert row["sentence"].endswith("although it acknowledged them: the client gave up after 2 s.")


@pytest.mark.parametrize(("port", "severity"), [(5432, "warning"), (7_000, "info")])
def test_the_first_message_to_a_database_wants_an_answer(port: int, severity: str, tmp_path: Path) -> None:
    wire = Wire()
    for i in range(2):
        start = 15_000.0 * i
        link = request(Connection(wire, 40_001 + i, server_port=port).open(start), start + 30)
        link.send(start + 10_030, 0, 200, 0, FIN | ACK, ack=0).send(start + 10_050, 1, 0, 0, ACK, ack=201)
    (row,) = unanswered_in(wire, tmp_path)
    assert (row["severity"], row["failed"]) == (severity, 2)


def test_a_request_among_answered_ones_is_a_note(tmp_path: Path) -> None:
    link = request(Connection(Wire()).open(), 30)
    link.send(80, 1, 0, 500, PSH | ACK, ack=200).send(100, 0, 200, ack=500)
    (row,) = unanswered_in(request(link, 1_000, 200, ack=500).wire, tmp_path)
    assert (row["severity"], row["failed"]) == ("info", 1)


def long_poll(link: Connection) -> None:
    """The server holds each request for 25 s; the last link is open at the end."""
    request(link, 30).send(25_000, 1, 0, 100, PSH | ACK, ack=200).send(25_020, 0, 200, ack=100)
    request(link, 25_030, 200, ack=100)


def lost(link: Connection) -> None:
    """The request never arrives."""
    request(link, 30, acked=False)
    for again in (300, 900, 2_100, 4_500):
        link.send(again, 0, 0, 200, PSH | ACK, ack=0)


def half_read(link: Connection) -> None:
    """An upload that pauses."""
    for i in range(4):
        request(link, 30 + 3_000 * i, 200 * i)


def gives_up(after: float) -> Any:
    """The client closes some time after its message was acknowledged."""

    def talk(link: Connection) -> None:
        request(link, 30).send(30 + after, 0, 200, 0, FIN | ACK, ack=0)

    return talk


@pytest.mark.parametrize(
    ("waits", "server_port", "severity"), [((3_000, 3_010), 9999, "info"), ((3_000,), 80, "warning")]
)
def test_clients_that_give_up_have_a_timeout_or_a_known_protocol(
    waits: tuple[float, ...], server_port: int, severity: str, tmp_path: Path
) -> None:
    wire = Wire()
    for i, after in enumerate(waits):
        gives_up(after)(Connection(wire, 40_001 + i, server_port=server_port).open())
    (row,) = unanswered_in(wire, tmp_path)
    assert row["severity"] == severity


@pytest.mark.parametrize(
    ("talk", "server_port", "count"),
    [
        (long_poll, 80, 2),
        (lost, 80, 2),
        (half_read, 9999, 2),
        (lambda link: request(link, 30), 514, 3),
        (lambda link: request(link, 30), 9999, 1),
        (gives_up(3_000), 9999, 1),
    ],
    ids=("held", "lost", "upload", "syslog", "single of an unknown protocol", "message and a pause"),
)
def test_no_server_is_blamed(talk: Any, server_port: int, count: int, tmp_path: Path) -> None:
    wire = Wire()
    for i in range(count):
        talk(Connection(wire, 40_001 + i, server_port=server_port).open())
    assert not unanswered_in(wire, tmp_path)
