# SPDX-License-Identifier: Apache-2.0
"""Where the time of a flow went: each row of the table in docs/tables.md beside its nearest neighbor, in exact times where the
capture has them; simulated senders at three capture points; and the sum of the parts, which is the life of every flow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import wiretale
from checkout import ROOT
from limited_sender import POINTS, RTT, SCALE, Sender
from plain_wire import ACK, FIN, MSS, PSH, SYN, Connection, Wire, sack, syn_options

PARTS = (
    "connecting",
    "client",
    "server",
    "loss",
    "queue",
    "path",
    "window",
    "send_buffer",
    "transfer",
    "idle",
    "unknown",
)
FLOWS_MOST = 3000  # of a capture that are added up
CAPTURES = {".pcap", ".pcapng", ".gz", ".dmp", ".cap"}


def parts_of(row: Any) -> dict[str, int]:
    """The parts of a flow in ns."""
    return {part: row[f"time_{part}_ns"] for part in PARTS}


def milliseconds(path: Path) -> dict[str, float]:
    """The parts of the only flow that are not 0, in ms; they sum to its life."""
    (row,) = wiretale.analyze(path).flows.rows()
    parts = parts_of(row)
    assert sum(parts.values()) == row["last_ns"] - row["first_ns"]
    return {part: ns / 1e6 for part, ns in parts.items() if ns}


class Dialogue:
    """A connection captured at the client, whose RTT is 20 ms and whose server answers after `server` ms."""

    def __init__(self) -> None:
        self.connection = Connection(Wire()).open()
        self.now, self.sent = 20.0, [0, 0]

    def say(self, side: int, size: int, after: float, flags: int = ACK | PSH) -> None:
        """Data of a side, `after` ms after the packet before."""
        self.now += after
        self.connection.send(self.now, side, self.sent[side], size, flags, ack=self.sent[1 - side])
        self.sent[side] += size

    def acknowledge(self, side: int, after: float) -> None:
        self.now += after
        self.connection.send(self.now, side, self.sent[side], ack=self.sent[1 - side])

    def turn(self, pause: float, server: float, size: int = 300) -> None:
        """The client asks after a pause; an ACK comes after the round trip, the answer after the server's time."""
        self.say(0, 100, pause)
        self.acknowledge(1, 20)
        self.say(1, size, server)
        self.acknowledge(0, 0)

    def close(self, after: float) -> None:
        for side, ms in ((0, after), (1, 20)):
            self.now += ms
            self.connection.send(self.now, side, self.sent[side], flags=FIN | ACK, ack=self.sent[1 - side])


def turns(*times: tuple[float, float]) -> Wire:
    talk = Dialogue()
    for pause, server in times:
        talk.turn(pause, server)
    talk.close(0)
    return talk.connection.wire


def held_request(pause: float) -> Wire:
    """A request in two parts, `pause` ms apart, whose first part is acknowledged at once."""
    talk = Dialogue()
    talk.say(0, 240, 0)
    talk.acknowledge(1, 20)
    talk.say(0, 1000, pause)
    talk.acknowledge(1, 20)
    talk.say(1, 160, 10)
    talk.close(0)
    return talk.connection.wire


def unanswered(seconds: float) -> Wire:
    """A request that the server's kernel acknowledges; the client waits, and gives up with a FIN."""
    talk = Dialogue()
    talk.say(0, 100, 0)
    talk.acknowledge(1, 20)
    talk.close(1000 * seconds)
    return talk.connection.wire


def closing_notice() -> Wire:
    """The client closes right after its last message, so that nobody waits for an answer."""
    talk = Dialogue()
    talk.turn(0, 10)
    talk.say(0, 31, 5)
    talk.close(0)
    return talk.connection.wire


def repeated_fin(half_closed: bool) -> Wire:
    """The server's FIN is lost, and repeated after 300 ms; its ACK has window 0. `half_closed`: the client's FIN ended its
    request, and it waits for the answer to end."""
    talk = Dialogue()
    talk.turn(0, 10)
    talk.close(0)
    if half_closed:
        (*_, (fin_ms, _)) = talk.connection.wire.packets
        talk.connection.wire.packets.pop()
        talk.connection.send(fin_ms, 1, 300, 700, ACK | PSH, ack=101)
        talk.connection.send(fin_ms, 1, 1000, flags=FIN | ACK, ack=101)
        talk.connection.send(fin_ms, 0, 101, ack=1000)
    at = 1000 if half_closed else 300
    talk.connection.send(talk.now + 300, 1, at, flags=FIN | ACK, ack=101)
    talk.connection.send(talk.now + 300, 0, 101, ack=at + 1, window=0)
    talk.connection.send(talk.now + 900, 0, 101, ack=at + 1, window=0)
    return talk.connection.wire


def more_of_the_server(pause: float) -> Wire:
    """The server says more after a pause, of which nobody knows whether the client waited for it."""
    talk = Dialogue()
    talk.turn(0, 10)
    talk.say(1, 100, pause)
    return talk.connection.wire


def silent_peer() -> Wire:
    """Nothing comes back for a request: three timeouts."""
    talk = Dialogue()
    talk.turn(0, 10)
    talk.say(0, 100, 0)
    for after in (220.0, 440.0, 880.0):
        talk.now += after
        talk.connection.send(talk.now, 0, 100, 100, ACK | PSH, ack=300)
    return talk.connection.wire


def lost_answer_then_pause(pause: float) -> Wire:
    """The last segment of an answer is retransmitted after 220 ms; the client acknowledges it at once and pauses."""
    talk = Dialogue()
    talk.turn(0, 10)
    talk.turn(10, 10)
    talk.say(0, 100, 10)
    talk.acknowledge(1, 20)
    talk.say(1, 300, 10)
    talk.now += 220
    talk.connection.send(talk.now, 1, 600, 300, ACK | PSH, ack=300)
    talk.acknowledge(0, 0.1)
    talk.turn(pause, 10)
    talk.close(0)
    return talk.connection.wire


def unanswered_syns() -> Wire:
    """Three SYNs in 3 s, then an answer."""
    connection = Connection(Wire())
    for ms in (0.0, 1000.0):
        connection.send(ms, 0, -1, flags=SYN, options=syn_options())
    connection.open(3000.0)
    return connection.wire


def greeting(server: float) -> Wire:
    """The server speaks first."""
    talk = Dialogue()
    talk.say(1, 50, 20 + server)
    talk.acknowledge(0, 0)
    talk.say(0, 100, 5)
    talk.say(1, 50, 20)
    talk.close(0)
    return talk.connection.wire


def closed_window(seconds: float) -> Wire:
    """The server stops reading: its window is closed until the end, and the client probes."""
    connection = Connection(Wire()).open()
    for number in range(4):
        connection.data(20.0, number * MSS, flags=ACK | PSH * (number == 3))
    connection.ack(40.0, 4 * MSS, window=0)
    for ms in (240.0, 640.0, 1000 * seconds):
        connection.send(ms, 0, 4 * MSS - 1, 0).ack(ms + 20, 4 * MSS, window=0)
    return connection.wire


def delayed_acks(delay: float) -> Wire:
    """Ten writes of three segments; the ACK of the third is delayed, and releases the next write."""
    connection, now = Connection(Wire()).open(rtt=1.0), 1.0
    for write in range(10):
        for number in range(3):
            connection.data(now, (3 * write + number) * MSS, flags=ACK | PSH * (number == 2))
        connection.ack(now + 1, (3 * write + 2) * MSS)
        now += 1 + delay
        connection.ack(now, (3 * write + 3) * MSS)
    return connection.wire


def polls(delays: tuple[float, ...], handshake: bool = False, segments: int = 1) -> Wire:
    """Requests every 400 ms, captured at the client, 1 ms from a server that answers in 5 ms. The client's ACKs of the answers
    are `delays` late."""
    talk, size = Dialogue(), 300 if segments == 1 else MSS
    talk.connection, talk.now = Connection(Wire()), 0.0
    if handshake:
        talk.connection.open(rtt=1.0)
    for delay in (*delays, None):
        talk.say(0, 100, 10)
        talk.acknowledge(1, 1)
        for number in range(segments):
            talk.say(1, size, 5 if number == 0 else 0.01)
        if delay is not None:
            talk.acknowledge(0, delay)
            talk.now += 384 - delay
    return talk.connection.wire


EXACT: dict[str, tuple[Callable[[], Wire], dict[str, float]]] = {
    "connecting: two SYNs were lost": (unanswered_syns, {"connecting": 3020.0}),
    "server and client: two turns": (
        lambda: turns((50, 30), (40, 800)),
        {"connecting": 20.0, "client": 90.0, "server": 830.0, "path": 40.0, "idle": 20.0},
    ),
    "idle: the dialogue has no other pause as long": (
        lambda: turns((50, 30), (3000, 800)),
        {"connecting": 20.0, "client": 50.0, "server": 830.0, "path": 40.0, "idle": 3020.0},
    ),
    "idle: no dialogue pauses for 7 s": (
        lambda: turns((7000, 30), (7000, 800)),
        {"connecting": 20.0, "server": 830.0, "path": 40.0, "idle": 14020.0},
    ),
    "client: a pause within a request": (
        lambda: held_request(1000),
        {"connecting": 20.0, "client": 1020.0, "server": 10.0, "path": 20.0, "idle": 20.0},
    ),
    "server: the greeting": (
        lambda: greeting(300),
        {"connecting": 20.0, "client": 5.0, "server": 300.0, "path": 40.0, "idle": 20.0},
    ),
    "server: a request that nobody answers": (
        lambda: unanswered(15), {"connecting": 20.0, "server": 15000.0, "path": 20.0, "idle": 20.0}
    ),
    "idle: the client closes after its last message": (
        closing_notice, {"connecting": 20.0, "client": 5.0, "server": 10.0, "path": 40.0}
    ),
    "idle: a FIN is repeated for a client that has closed": (
        lambda: repeated_fin(False), {"connecting": 20.0, "server": 10.0, "path": 20.0, "idle": 920.0}
    ),
    "server: a pause of 50 s within its data": (
        lambda: more_of_the_server(50_000), {"connecting": 20.0, "server": 50_010.0, "path": 20.0}
    ),
    "unknown: one of 70 s, after which it may push": (
        lambda: more_of_the_server(70_000), {"connecting": 20.0, "server": 10.0, "path": 20.0, "unknown": 70_000.0}
    ),
    "loss: the peer fell silent": (
        silent_peer, {"connecting": 20.0, "server": 10.0, "path": 20.0, "loss": 1540.0}
    ),
    "loss ends with the ACK that covers it, and the client pauses": (
        lambda: lost_answer_then_pause(4000),
        {"connecting": 20.0, "client": 20.0, "server": 40.0, "path": 80.0, "loss": 220.0, "queue": 0.1, "idle": 4020.0},
    ),
    "window: closed until the end": (
        lambda: closed_window(10), {"connecting": 20.0, "window": 10000.0}
    ),
    "server: it delays the ACKs that release the next write": (
        lambda: delayed_acks(200), {"connecting": 1.0, "server": 1800.0, "path": 10.0, "idle": 200.0}
    ),
    "client: it delays its ACKs, which the handshake shows": (
        lambda: polls((110, 150, 140), handshake=True),
        {"connecting": 1.0, "client": 3 * 394.0 + 9, "server": 20.0, "path": 4.0},
    ),
    "client: its ACKs are prompt, and the handshake is missing": (
        lambda: polls((0, 0, 0)), {"client": 3 * 394.0, "server": 20.0, "path": 4.0}
    ),
    "unknown: all of its ACKs may be late, and the handshake is missing": (
        lambda: polls((110, 150, 140)), {"client": 3 * 284.0, "server": 20.0, "path": 4.0, "unknown": 330.0}
    ),
    "path: an ACK of two full segments is never late": (
        lambda: polls((110, 110, 110), segments=3), {"client": 3 * 284.0, "server": 20.0, "path": 334.0, "transfer": 0.08}
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_parts_are_those_of_the_capture(tmp_path: Path, name: str) -> None:
    wire, expected = EXACT[name]
    parts = milliseconds(wire().write(tmp_path / "wire.pcap"))
    assert parts == pytest.approx(expected, abs=0.5), name


@pytest.mark.parametrize(("half_closed", "stalled_ms"), [(False, 0), (True, 300)])
def test_nobody_waits_for_the_fin_of_an_end_that_the_other_left(
    tmp_path: Path, half_closed: bool, stalled_ms: int
) -> None:
    trace = wiretale.analyze(repeated_fin(half_closed).write(tmp_path / "wire.pcap"))
    there, back = trace.directions.rows()
    assert (back["timeouts"], back["rto_idle_ns"]) == (1, stalled_ms * 1_000_000)
    assert (there["zero_windows"], there["zero_window_ns"]) == (2, 0)


def test_a_round_trip_above_the_least_is_a_queue(tmp_path: Path) -> None:
    talk = Dialogue()
    for waited in (20.0, 20.0, 45.0):
        talk.say(0, 100, 5)
        talk.acknowledge(1, waited)
        talk.say(1, 300, 1)
        talk.acknowledge(0, 0)
    parts = milliseconds(talk.connection.wire.write(tmp_path / "wire.pcap"))
    assert parts == pytest.approx(
        {"connecting": 20.0, "client": 15.0, "server": 3.0, "path": 60.0, "queue": 25.0}, abs=0.5
    )


LIMITED: dict[str, tuple[set[str], dict[str, Any]]] = {
    "window": ({"window"}, {"window": 160 << SCALE}),
    "path: a congestion window that grows": ({"path", "transfer"}, {"congestion_window": 14 * MSS, "growth": 0.5}),
    "path: TCP paces": ({"path"}, {"pace": 2.0, "congestion_window": 100 * MSS}),
    "send buffer": ({"send_buffer"}, {"send_buffer": 12 * MSS}),
    "idle: writes now and then": ({"idle"}, {"write": 20_000, "pause": 100.0}),
    "idle: large writes": ({"idle"}, {"write": 60_000, "pause": 190.0, "spacing": 0.1, "rtt": 10.0}),
    "transfer: a shaper in the sender's host": (
        {"transfer", "queue"},
        {"write": 131_072, "pause": 40.0, "spacing": 0.6, "rtt": 0.2, "congestion_window": 100 * MSS},
    ),
}


def arrivals(first_ms: float) -> Wire:
    """A transfer without timestamps, captured at its receiver behind a round trip of 20 ms: a segment every 2 ms, before that a
    hundred, one every `first_ms`."""
    connection, now = Connection(Wire()).open(near=20.0), 25.0
    for number in range(600):
        now += first_ms if number < 100 else 2.0
        connection.data(now, number * MSS)
        if number % 2:
            connection.ack(now, (number + 1) * MSS)
    return connection.wire


@pytest.mark.parametrize(("first_ms", "part"), [(2.0, "transfer"), (1.0, "unknown")])
def test_an_even_spacing_is_that_of_the_bottleneck_unless_it_was_closer_before(
    tmp_path: Path, first_ms: float, part: str
) -> None:
    parts = milliseconds(arrivals(first_ms).write(tmp_path / "wire.pcap"))
    assert parts[part] > 0.85 * sum(parts.values()), parts


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("timestamps", [True, False])
@pytest.mark.parametrize("name", LIMITED)
def test_the_limit_of_a_sender_is_seen_from_any_capture_point(
    tmp_path: Path, name: str, timestamps: bool, point: str
) -> None:
    expected, settings = LIMITED[name]
    near = POINTS[point] * settings.get("rtt", RTT) / RTT
    parts = milliseconds(Sender(timestamps, near, **settings).wire().write(tmp_path / "wire.pcap"))
    if "pace" in settings and not timestamps and point != "sender":
        expected = expected | {"transfer"}  # as a bottleneck of this rate spaces segments
    assert sum(parts.get(part, 0.0) for part in expected) > 0.85 * sum(parts.values()), parts


def test_the_path_is_reduced_after_a_loss(tmp_path: Path) -> None:
    """Twenty segments a round trip, of which the first of the fourth is lost; then ten a round trip."""
    connection, at, now = Connection(Wire()).open(), 0, 20.0
    for flight in (20, 20, 20, 20, 10, 10, 10, 10, 10, 10):
        lost = at if (flight, at) == (20, 60 * MSS) else None
        for number in range(flight):
            connection.data(now + 0.01 * number, at + number * MSS)
        if lost is not None:
            for number in range(1, flight):
                connection.ack(now + 20 + 0.01 * number, lost)
            connection.data(now + 20.1, lost)
            now += 20.1
        at += flight * MSS
        connection.ack(now + 20, at)
        now += 20
    (row,) = wiretale.analyze(connection.wire.write(tmp_path / "wire.pcap")).flows.rows()
    assert row["reduced_path_ns"] == pytest.approx(100e6, rel=0.2)
    assert row["reduced_path_ns"] < row["time_path_ns"]


def test_a_fin_long_after_a_repair_is_not_of_the_recovery(tmp_path: Path) -> None:
    """A segment is lost and repaired within 100 ms; the sender closes 240 s later, and its FIN is acknowledged."""
    talk = Connection(Wire()).open()
    for i in range(10):
        talk.data(50 + i, MSS * i, flags=PSH | ACK if i == 9 else ACK)
    for i in range(3):
        talk.ack(72 + i, MSS * 2, options=sack((MSS * 3, MSS * (4 + 2 * i))))
    talk.data(75, MSS * 2).ack(95, MSS * 10)
    talk.send(240_000, 0, MSS * 10, flags=FIN | ACK).ack(240_020, MSS * 10 + 1)
    talk.send(240_030, 1, 0, flags=FIN | ACK, ack=MSS * 10 + 1)
    (flow,) = wiretale.analyze(talk.wire.write(tmp_path / "idle.pcap")).flows
    assert 0 < flow["time_loss_ns"] <= 60_000_000


def test_the_ack_of_a_fin_after_a_request_is_no_queue(tmp_path: Path) -> None:
    """The client gives up after 2 s and closes; the server answers 1.4 s later."""
    talk = Connection(Wire()).open().send(30, 0, 0, 400, flags=PSH | ACK).ack(50, 400)
    talk.send(2030, 0, 400, flags=FIN | ACK).ack(2051, 401).send(3450, 1, 0, 1200, ack=401)
    (flow,) = wiretale.analyze(talk.wire.write(tmp_path / "late.pcap")).flows
    assert flow["time_queue_ns"] <= 1_000_000 and flow["time_server_ns"] == pytest.approx(3.4e9, rel=0.01)


def test_one_direction_has_no_account(tmp_path: Path) -> None:
    connection = Connection(Wire())
    for number in range(20):
        connection.data(float(number), number * MSS)
    (row,) = wiretale.analyze(connection.wire.write(tmp_path / "wire.pcap")).flows.rows()
    assert set(parts_of(row).values()) == {None} and row["reduced_path_ns"] is None


def every_capture() -> list[Path]:
    folders = [ROOT / "sample_pcaps", ROOT.parent / "shared" / "captures", ROOT.parent / "shared" / "labelled"]
    files = [path for folder in folders if folder.exists() for path in folder.rglob("*")]
    return sorted(path for path in files if path.suffix in CAPTURES)


def test_parts_sum_to_the_life_of_every_flow() -> None:
    judged = 0
    for path in every_capture():
        try:
            rows = wiretale.analyze(path).flows.rows(0, FLOWS_MOST)
        except wiretale.InputError:
            continue
        for row in rows:
            parts = parts_of(row)
            assert (None in parts.values()) == (set(parts.values()) == {None}), (path, row["flow"])
            if parts["path"] is None:
                continue
            assert min(parts.values()) >= 0, (path, row["flow"], parts)
            assert sum(parts.values()) == row["last_ns"] - row["first_ns"], (path, row["flow"], parts)
            assert 0 <= row["reduced_path_ns"] <= parts["path"], (path, row["flow"])
            judged += 1
    assert judged > 50
