# SPDX-License-Identifier: Apache-2.0
"""Requests and responses whose times are written into the capture: table `exchanges` must return them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import wiretale
from exchange_rows import turns_of
from plain_wire import ACK, FIN, MSS, PSH, Connection, Wire

RTT, NEAR = 20.0, 6.0  # ms; both ways, and of that between capture point and client
FAR = RTT - NEAR
MS = 1_000_000
Row = dict[str, Any]


class Talk:
    """A connection whose ends talk in turns, captured `NEAR` ms of round trip from the client."""

    def __init__(self, wire: Wire | None = None, handshake: bool = True, port: int = 40000, server: int = 80) -> None:
        self.connection = Connection(wire or Wire(), port, server_port=server)
        self.sent = [0, 0]
        self.now = 100.0
        if handshake:
            # the SYN-ACK passes FAR after the SYN, and the ACK NEAR after it
            self.connection.open(0.0, RTT, NEAR)

    def say(self, side: int, size: int, ms: float | None = None, ack: int | None = None) -> None:
        """New data of a side, which acknowledges all before if nothing else is given."""
        ms = self.now if ms is None else ms
        self.connection.send(
            ms, side, self.sent[side], size, ACK | PSH, ack=self.sent[1 - side] if ack is None else ack
        )
        self.sent[side] += size

    def message_with_a_loss(self, side: int, ms: float, seen: bool) -> None:
        """A message of a side in three segments, of which the second is lost: behind the capture point if `seen`, else before."""
        self.say(side, MSS, ms)
        if seen:
            self.say(side, MSS, ms + 1)
        else:
            self.sent[side] += MSS
        self.say(side, 100, ms + 2)

    def acked(self, side: int, ms: float) -> None:
        """A pure ACK of a side for all data so far."""
        self.connection.send(ms, side, self.sent[side], ack=self.sent[1 - side])

    def turn(
        self, server: float, pause: float, request: Sequence[int] = (200,), response: Sequence[int] = (MSS,)
    ) -> None:
        """A request, its response after `server` ms of server time, and `pause` ms of the client; one ms per packet."""
        for size in request:
            self.say(0, size)
            self.now += 1.0
        self.acked(1, self.now - 1 + FAR)
        self.now += FAR + server - 1
        for size in response:
            self.say(1, size)
            self.now += 1.0
        self.acked(0, self.now - 1 + NEAR)
        self.now += NEAR + pause - 1


@pytest.fixture
def turns(tmp_path: Path) -> Any:
    def rows(wire: Wire) -> tuple[list[Row], str | None]:
        trace = wiretale.analyze(wire.write(tmp_path / "talk.pcap"))
        return turns_of(trace), trace.flows.rows()[0]["exchange"]

    return rows


def test_each_turn_has_its_times(turns: Any) -> None:
    talk = Talk()
    for server, pause in ((30, 50), (800, 10), (0, 0), (200, 100)):
        talk.turn(server, pause, (MSS, MSS, 10), (MSS, MSS, MSS, 77))
    rows, exchange = turns(talk.connection.wire)
    assert exchange == "turns" and [row["turn"] for row in rows] == [0, 1, 2, 3]
    assert [row["server_ns"] for row in rows] == [30 * MS, 800 * MS, 0, 200 * MS]
    assert [row["pause_ns"] for row in rows] == [None, 50 * MS, 10 * MS, 0]
    assert {row["network_ns"] for row in rows} == {FAR * MS}
    assert {row["client_network_ns"] for row in rows[1:]} == {NEAR * MS}
    assert {(row["request_bytes"], row["request_ns"]) for row in rows} == {(2 * MSS + 10, 2 * MS)}
    assert {(row["response_bytes"], row["response_ns"]) for row in rows} == {(3 * MSS + 77, 3 * MS)}
    assert {row["direction"] for row in rows} == {0}
    assert (rows[0]["asked_frame"], rows[0]["last_frame"], rows[1]["asked_frame"]) == (4, 11, 13)
    stalls = [f"retransmission_{place}_ns" for place in ("client", "network", "server")]
    assert all(row[name] == 0 for row in rows for name in stalls)


def test_data_of_one_direction_alone_is_a_stream(turns: Any) -> None:
    talk = Talk()
    for i in range(20):
        talk.say(0, MSS, 100.0 + i)
        talk.acked(1, 100.5 + i)
    assert turns(talk.connection.wire) == ([], "streaming")


def test_a_direction_that_was_not_captured_leaves_nothing_known(turns: Any) -> None:
    talk = Talk()
    for _ in range(5):
        talk.turn(30, 20)
    talk.connection.wire.packets = [
        (ms, frame) for ms, frame in talk.connection.wire.packets if frame[26:30] == bytes([10, 0, 0, 1])
    ]
    assert turns(talk.connection.wire) == ([], None)


def test_pipelined_requests_have_no_turns(turns: Any) -> None:
    """A request each 5 ms, each answered 14 ms later: the client never waits."""
    talk, wire = Talk(), []
    for i in range(40):
        wire += [(100 + 5 * i, 0, i), (100 + 5 * i + FAR, 1, i)]
    for ms, side, _ in sorted(wire):
        seen = max((k + 1 for t, who, k in wire if who != side and t <= ms - (NEAR if side == 0 else FAR)), default=0)
        talk.say(side, 300, ms, ack=300 * seen)
    assert turns(talk.connection.wire) == ([], "pipelined")


def test_a_request_under_way_with_its_response_is_not_divided(turns: Any) -> None:
    """The client sends its third request when it has seen half of the second response."""
    talk = Talk()
    talk.turn(30, 50)
    talk.say(0, 200)
    start = talk.now
    talk.say(1, MSS, start + 40)
    talk.say(1, MSS, start + 41)
    talk.say(0, 200, start + 40.5 + NEAR, ack=2 * MSS)
    talk.say(1, MSS, start + 80)
    talk.acked(0, start + 90)
    talk.now = start + 200
    for _ in range(3):
        talk.turn(60, 70)
    rows, exchange = turns(talk.connection.wire)
    assert exchange == "turns" and [row["server_ns"] for row in rows] == [30 * MS, 60 * MS, 60 * MS, 60 * MS]
    assert [row["pause_ns"] for row in rows] == [None, None, 70 * MS, 70 * MS]


def test_data_that_crosses_the_request_is_not_its_response(turns: Any) -> None:
    """As the tickets of TLS 1.3: the server sends them before it has the request."""
    talk = Talk()
    talk.turn(30, 50)
    start = talk.now
    talk.say(0, 64, start)
    talk.say(1, 500, start + FAR)
    talk.say(0, 200, start + FAR + 2, ack=MSS)  # sent before the tickets arrived
    talk.acked(0, start + FAR + NEAR)
    talk.say(1, 900, start + FAR + 2 + FAR + 120)
    talk.acked(0, start + FAR + 2 + FAR + 120 + NEAR)
    talk.now = start + 400
    talk.turn(30, 50)
    rows, _ = turns(talk.connection.wire)
    assert [(row["request_bytes"], row["server_ns"], row["response_bytes"]) for row in rows] == [
        (200, 30 * MS, MSS),
        (264, 120 * MS, 900),
        (200, 30 * MS, MSS),
    ]


@pytest.mark.parametrize("seen", [True, False])
def test_a_stall_in_the_request_is_charged_to_the_place_of_its_loss(turns: Any, seen: bool) -> None:
    """Its last but one segment is lost behind the capture point, or before it, and retransmitted by RTO."""
    talk = Talk()
    talk.turn(30, 50)
    start, at = talk.now, talk.sent[0]
    talk.message_with_a_loss(0, start, seen)
    talk.connection.send(start + FAR, 1, talk.sent[1], ack=at + MSS)
    talk.connection.send(start + 2 + FAR, 1, talk.sent[1], ack=at + MSS)
    talk.connection.send(start + 302, 0, at + MSS, MSS, ACK, ack=talk.sent[1])
    talk.acked(1, start + 302 + FAR)
    talk.say(1, MSS, start + 302 + FAR + 80)
    talk.acked(0, start + 302 + FAR + 80 + NEAR)
    talk.now = start + 500
    talk.turn(30, 50)
    row = turns(talk.connection.wire)[0][1]
    places = {place: row[f"retransmission_{place}_ns"] for place in ("client", "network", "server")}
    assert places == {"client": 0, "network": 0, "server": 0} | {"server" if seen else "client": 300 * MS}
    assert (row["request_ns"], row["server_ns"], row["request_bytes"]) == (2 * MS, 80 * MS, 2 * MSS + 100)


@pytest.mark.parametrize("seen", [True, False])
def test_a_stall_in_the_response_is_charged_to_the_place_of_its_loss(turns: Any, seen: bool) -> None:
    talk = Talk()
    talk.turn(30, 50)
    start, at = talk.now, talk.sent[1]
    talk.say(0, 200, start)
    talk.acked(1, start + FAR)
    now = start + FAR + 80
    talk.message_with_a_loss(1, now, seen)
    for ms in (now + NEAR, now + 2 + NEAR):
        talk.connection.send(ms, 0, talk.sent[0], ack=at + MSS)
    talk.connection.send(now + 252, 1, at + MSS, MSS, ACK, ack=talk.sent[0])
    talk.acked(0, now + 252 + NEAR)
    talk.now = now + 252 + NEAR + 40
    talk.turn(30, 50)
    rows, _ = turns(talk.connection.wire)
    places = {place: rows[1][f"retransmission_{place}_ns"] for place in ("client", "network", "server")}
    assert places == {"client": 0, "network": 0, "server": 0} | {"client" if seen else "server": 250 * MS}
    assert (rows[1]["response_ns"], rows[1]["server_ns"], rows[1]["response_bytes"]) == (2 * MS, 80 * MS, 2 * MSS + 100)
    assert rows[2]["pause_ns"] == 40 * MS


@pytest.mark.parametrize("server", [80, 51000])
def test_a_capture_may_begin_in_a_response(turns: Any, server: int) -> None:
    """The flow's first packet comes from the server. Its port shows that; if both are ephemeral, the first data counts
    as a request."""
    talk = Talk(handshake=False, server=server)
    talk.say(1, MSS)
    talk.acked(0, talk.now + NEAR)
    talk.now += NEAR + 50
    for _ in range(3):
        talk.turn(30, 50)
    rows, exchange = turns(talk.connection.wire)
    assert exchange == "turns" and {row["direction"] for row in rows} == {int(server == 80)}
    if server == 80:
        assert [row["server_ns"] for row in rows] == [30 * MS] * 3
        assert [row["pause_ns"] for row in rows] == [None, 50 * MS, 50 * MS]


def test_a_request_without_a_response_has_no_server_time(turns: Any) -> None:
    talk = Talk()
    talk.turn(30, 50)
    talk.say(0, 200)
    talk.acked(1, talk.now + FAR)
    rows, _ = turns(talk.connection.wire)
    assert rows[1]["request_bytes"] == 200 and rows[1]["pause_ns"] == 50 * MS
    assert all(rows[1][name] is None for name in ("server_ns", "network_ns", "response_ns", "response_bytes"))


def test_without_an_unforced_acknowledgment_the_round_trip_is_unknown(turns: Any) -> None:
    """The capture begins late, and each ACK waits for a response: no sample shows the path."""
    talk = Talk(handshake=False)
    for _ in range(4):
        talk.say(0, 200)
        talk.say(1, 200, talk.now + FAR + 10)
        talk.now += FAR + 10 + NEAR + 50
    rows, exchange = turns(talk.connection.wire)
    assert exchange == "turns" and len(rows) == 4
    assert {row[name] for row in rows for name in ("server_ns", "network_ns", "pause_ns")} == {None}


def test_a_half_closed_connection_is_answered(turns: Any) -> None:
    """The FIN of the client is under way when the server answers."""
    talk = Talk()
    talk.say(0, 200)
    talk.connection.send(talk.now + 1, 0, 200, flags=ACK | FIN, ack=0)
    talk.acked(1, talk.now + FAR)
    talk.say(1, 900, talk.now + FAR + 40)
    rows, _ = turns(talk.connection.wire)
    assert [(row["server_ns"], row["response_bytes"]) for row in rows] == [(40 * MS, 900)]


@pytest.mark.parametrize("acked", [True, False])
def test_a_pause_of_the_sender_within_a_message_is_known(turns: Any, acked: bool) -> None:
    """The client pauses for 300 ms in its request, the server for 500 ms in its response, with and without an ACK."""
    talk = Talk()
    talk.turn(30, 50)
    start = talk.now
    talk.say(0, 200, start)
    if acked:
        talk.acked(1, start + FAR)
    talk.say(0, 100, start + 300)
    talk.acked(1, start + 300 + FAR)
    now = start + 300 + FAR + 80
    talk.say(1, 900, now)
    if acked:
        talk.acked(0, now + NEAR)
    talk.say(1, 400, now + 500)
    talk.acked(0, now + 500 + NEAR)
    talk.now = now + 500 + NEAR + 40
    talk.turn(30, 50)
    rows, _ = turns(talk.connection.wire)
    assert [row["request_pause_ns"] for row in rows] == [0, 300 * MS, 0]
    assert [row["response_pause_ns"] for row in rows] == [0, 500 * MS, 0]
    assert (rows[1]["request_ns"], rows[1]["response_ns"]) == (300 * MS, 500 * MS)
    assert [row["server_ns"] for row in rows] == [30 * MS, 80 * MS, 30 * MS]


def test_a_round_of_the_congestion_window_is_no_pause(turns: Any) -> None:
    """A response of three windows, of which ACKs release the second and the third: captured at the client."""
    talk = Talk()
    talk.turn(30, 50)
    talk.say(0, 200)
    now = talk.now + FAR + 80
    for count in (10, 20, 7):
        for i in range(count):
            at = now + 0.1 * i
            last = count == 7 and i == 6
            talk.connection.send(
                at, 1, talk.sent[1], 500 if last else MSS, ACK | PSH if last else ACK, ack=talk.sent[0]
            )
            talk.sent[1] += 500 if last else MSS
        talk.acked(0, now + 0.1 * count + NEAR)
        now += 0.1 * count + RTT
    talk.now = now + 100
    talk.turn(30, 50)
    rows, _ = turns(talk.connection.wire)
    assert [row["response_pause_ns"] for row in rows] == [0, 0, 0] and rows[1]["response_ns"] > 2 * RTT * MS


def test_an_ack_that_ends_nagles_delay_is_no_pause(turns: Any) -> None:
    """A second short segment waits for the ACK of the first, which the other end delays by 40 ms."""
    talk = Talk()
    talk.turn(30, 50)
    start = talk.now
    talk.say(0, 200, start)
    talk.acked(1, start + FAR + 40)
    talk.say(0, 100, start + FAR + 40 + NEAR)
    talk.acked(1, start + 2 * FAR + 40 + NEAR)
    talk.say(1, 900, start + 2 * FAR + 40 + NEAR + 80)
    talk.acked(0, start + 2 * FAR + 40 + NEAR + 80 + NEAR)
    rows, _ = turns(talk.connection.wire)
    assert (rows[1]["request_pause_ns"], rows[1]["request_ns"]) == (0, (FAR + 40 + NEAR) * MS)


@pytest.mark.parametrize("is_lost", [True, False])
def test_an_answer_whose_beginning_was_lost_upstream_leaves_the_time_unknown(tmp_path: Path, is_lost: bool) -> None:
    talk = Talk()
    talk.turn(server=5.0, pause=2.0)
    talk.say(0, 200)
    talk.acked(1, talk.now + FAR)
    begun, answered = talk.sent[1], talk.now + FAR + 700.0
    if is_lost:
        talk.sent[1] += 3 * MSS  # all of its first flight; a later segment comes first
    talk.say(1, MSS, answered)
    if is_lost:
        talk.connection.send(answered + 40.0, 1, begun, 3 * MSS, ACK | PSH, ack=talk.sent[0])
    trace = wiretale.analyze(talk.connection.wire.write(tmp_path / "capture.pcap"))
    first, second = turns_of(trace)
    assert first["server_ns"] == 5 * MS and second["server_ns"] == (None if is_lost else 700 * MS)
    assert (trace.answer.cause == "slow-server") is not is_lost, trace.answer.sentence


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("missing", [True, False])
def test_a_first_transmission_that_was_lost_upstream_leaves_the_time_unknown(
    turns: Any, side: int, missing: bool
) -> None:
    """Without an IP ID that is missing, 300 ms are the client's pause or the server's time."""
    talk = Talk()
    ids = talk.connection.wire.ids
    for _ in range(4):
        talk.turn(30, 50)
    talk.say(0, 200)
    talk.acked(1, talk.now + FAR)
    talk.now += FAR + 30
    if side == 1:
        ids["10.0.0.2"] += missing
        talk.now += 300
    talk.say(1, MSS)
    talk.acked(0, talk.now + NEAR)
    talk.now += NEAR + 50
    if side == 0:
        ids["10.0.0.1"] += missing
        talk.now += 300
    talk.turn(30, 50)
    rows, _ = turns(talk.connection.wire)
    column, stall = [("pause_ns", "retransmission_client_ns"), ("server_ns", "retransmission_server_ns")][side]
    row = rows[4 + (side == 0)]
    assert (row[column], row[stall]) == ((None, None) if missing else ((330 if side else 350) * MS, 0))


@pytest.mark.parametrize("missing", [True, False])
def test_a_pause_that_may_hide_an_rto_is_unknown(turns: Any, missing: bool) -> None:
    """A short connection has too few packets before to say that the second part of the request was lost upstream."""
    talk = Talk()
    talk.turn(30, 50)
    talk.say(0, 200)
    talk.acked(1, talk.now + FAR)
    talk.now += 300
    talk.connection.wire.ids["10.0.0.1"] += missing
    talk.turn(30, 50)
    rows, _ = turns(talk.connection.wire)
    assert [row["request_pause_ns"] for row in rows] == [0, None if missing else 300 * MS]


@pytest.mark.parametrize("ahead", [True, False])
def test_a_response_that_an_ack_announced_was_sent_before(turns: Any, ahead: bool) -> None:
    """The request comes again; the sequence number of its ACK shows a response that was lost upstream."""
    talk = Talk()
    for _ in range(4):
        talk.turn(30, 50)
    talk.say(0, 200)
    talk.connection.send(talk.now + 240, 0, talk.sent[0] - 200, 200, ACK | PSH, ack=talk.sent[1])
    talk.connection.send(talk.now + 240 + FAR, 1, talk.sent[1] + (900 if ahead else 0), ack=talk.sent[0])
    talk.say(1, 900, talk.now + 400)
    rows, _ = turns(talk.connection.wire)
    assert (rows[4]["server_ns"] is None) == ahead


def test_a_retransmission_after_the_response_does_not_hide_the_next_request(turns: Any) -> None:
    """The ACK of the request was lost behind the capture point, so it is sent again while the server answers."""
    talk = Talk()
    talk.turn(30, 50)
    at = talk.sent[0]
    talk.turn(300, 50)
    talk.connection.send(talk.now - 52, 0, at, 200, ACK | PSH, ack=talk.sent[1] - MSS)
    talk.turn(60, 50)
    talk.turn(70, 50)
    rows, exchange = turns(talk.connection.wire)
    assert exchange == "turns" and [row["server_ns"] for row in rows] == [30 * MS, 300 * MS, 60 * MS, 70 * MS]
