# SPDX-License-Identifier: Apache-2.0
"""Samples of TCP: losses, RTOs, reordering, and transfers that the receiver limits."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

from sample_files import save, truth_of
from simulation import BESIDE_RECEIVER, BESIDE_SENDER, MIDWAY, Distance, Fate
from tcp_connection import Connection, Script
from tcp_sender import SenderRules
from write_captures import BIG, MILLISECOND, SECOND, pattern

MSS = 1448
SMALL_BUFFER = 16 * MSS
AT_SENDER = Distance(0, 10 * MILLISECOND)
SNAPLEN = 96
UPSTREAM = Fate(lost="upstream")
DOWNSTREAM = Fate(lost="downstream")


def talks(*scripts: Script) -> list[Connection]:
    """Starts each connection 700 ms after the one before it."""
    return [
        Connection(replace(script, start_ns=number * 700 * MILLISECOND), number)
        for number, script in enumerate(scripts)
    ]


def make_tcp_losses(path: Path) -> None:
    """300 kB: segment 70 is lost and retransmitted fast, the last is lost and retransmitted after an RTO."""
    rules = SenderRules(timeout_ns=224 * MILLISECOND)
    fates = dict.fromkeys([(70, 0), (207, 0)], DOWNSTREAM)
    script = Script([300_000], distance=AT_SENDER, rules=rules, fates=fates)
    about = (
        "An upload of 300 kB captured beside its sender: one fast retransmission, and the last segment after an RTO."
    )
    save(path, truth_of(about, talks(script)), snaplen=SNAPLEN)


def make_damaged(path: Path) -> None:
    """The first 60 packets of an upload, then a record of 1.8 GB of which the file has 200 bytes."""
    about = "The first 60 packets of an upload, without an anomaly; the file is damaged after them."
    truth = truth_of(about, talks(Script([60_000], distance=AT_SENDER)))
    truth.seen = truth.seen[:60]
    truth.sums[0, 0]["unique_bytes"] = sum(s.payload for s in truth.seen)
    seconds = truth.seen[-1].record[0] // SECOND
    damage = struct.pack("<IIII", seconds, 999_999, 0x6B6B6B6B, 0x6B6B6B6B)
    save(path, truth, snaplen=SNAPLEN, tail=damage + pattern(200))


def make_fast_retransmissions(path: Path) -> None:
    """Loses one segment, later two of one window, upstream and downstream."""
    lost = [(14, 0), (61, 0), (64, 0)]
    scripts = [
        Script([100 * MSS], upload=upload, distance=MIDWAY, fates=dict.fromkeys(lost, fate))
        for upload, fate in [(True, UPSTREAM), (True, DOWNSTREAM), (False, UPSTREAM)]
    ]
    about = (
        "Captured midway: flow 0 loses segments upstream of the capture point, flow 1 downstream, flow 2 is a "
        "download that loses upstream; all are fast retransmissions, after SACKs of three segments."
    )
    save(path, truth_of(about, talks(*scripts)))


def make_timeouts(path: Path) -> None:
    """Losses without enough segments behind them for fast retransmit, and a lost retransmission."""
    tail = {(37, 0): DOWNSTREAM}
    third_last = {(37, 0): UPSTREAM}
    twice = {(20, 0): DOWNSTREAM, (20, 1): DOWNSTREAM}
    connections = talks(
        Script([38 * MSS, 400], fates=tail),
        Script([40 * MSS], distance=MIDWAY, fates=third_last),
        Script([60 * MSS], fates=twice),
    )
    about = (
        "Timeouts of 250 ms: a loss downstream with one segment behind it, one upstream with two behind it, "
        "and one downstream whose fast retransmission is lost too."
    )
    save(path, truth_of(about, connections))


def make_lost_tail(path: Path) -> None:
    """Loses the last segment upstream, so the capture has no gap."""
    connections = talks(Script(distance=BESIDE_RECEIVER, fates={(23, 0): UPSTREAM}, close_ns=1_020 * MILLISECOND))
    connections[0].clock.at(1_000 * MILLISECOND, connections[0].sender.write, 23 * MSS + 700)
    about = (
        "Captured beside the receiver: the last segment is lost upstream and retransmitted after an RTO, so it "
        "appears once, in order; only the pause, TSval and a missing IP ID, of which none was missing in a longer "
        "pause before, prove the loss."
    )
    save(path, truth_of(about, connections))


def make_go_back_n(path: Path) -> None:
    """Delays three segments for 300 ms and loses two; the RTO retransmits all five."""
    late = Fate(stalled_ns=300 * MILLISECOND)
    fates = {(25, 0): late, (26, 0): Fate(), (27, 0): Fate(), (28, 0): DOWNSTREAM, (29, 0): DOWNSTREAM}
    connections = talks(Script([25 * MSS], every=1, fates=fates, close_ns=210 * MILLISECOND))
    connections[0].clock.at(200 * MILLISECOND, connections[0].sender.write, 5 * MSS)
    about = (
        "A path that stalls for 300 ms downstream of the capture point: the RTO after 250 ms retransmits five "
        "segments; three had arrived, as DSACK proves, the other two were lost."
    )
    save(path, truth_of(about, connections), tick_ns=1)


def make_tail_loss_probes(path: Path) -> None:
    """Loses the last acknowledgment or the last segment; a probe follows 42 ms later in both flows."""
    rules = SenderRules(tail_probe_ns=42 * MILLISECOND)
    ack_lost = Script([30 * MSS], rules=rules, ack_fates={(30 * MSS, 0): UPSTREAM})
    data_lost = Script([31 * MSS], rules=rules, upload=False, distance=BESIDE_SENDER, fates={(30, 0): DOWNSTREAM})
    about = (
        "Tail-loss probes after two round trips: in flow 0 only the last acknowledgment was lost and DSACK answers "
        "the probe; in flow 1 the last segment was lost and the probe repairs it."
    )
    save(path, truth_of(about, talks(ack_lost, data_lost)), pcapng=True, order=BIG)


def make_reordering(path: Path) -> None:
    """Segments overtake others upstream of the capture point."""
    near = Distance(6 * MILLISECOND, 4 * MILLISECOND)
    swapped = {(16, 0): Fate(late_ns=170_000), (40, 0): Fate(late_ns=170_000)}
    by_four = {(24, 0): Fate(late_ns=4 * 120_000 + 50_000)}
    patient = SenderRules(sacked_needed=8)  # Linux raises this if a path reorders
    connections = talks(
        Script([60 * MSS], distance=near, fates=swapped),
        Script([60 * MSS], distance=near, fates=by_four, rules=patient),
        Script([60 * MSS], distance=near, fates=by_four),
    )
    about = (
        "Reordering: two pairs of neighbors swapped, 50 µs apart; a segment late by four without a retransmission; "
        "the same with a spurious fast retransmission, answered by DSACK."
    )
    save(path, truth_of(about, connections), order=BIG, tick_ns=1)


def make_network_duplicate(path: Path) -> None:
    """The network copies one segment; the copy arrives 3 ms later."""
    script = Script([60 * MSS], distance=MIDWAY, fates={(19, 0): Fate(copy_ns=3 * MILLISECOND)})
    about = "The network delivers one segment twice, 3 ms apart with the same IP id; DSACK proves that both arrived."
    save(path, truth_of(about, talks(script)), order=BIG)


def make_zero_window(path: Path) -> None:
    """The receiver's application reads nothing for 1.4 s; the sender probes with 0 bytes, then with 1."""
    connections = []
    for number, probe_bytes in enumerate((0, 1)):
        begin = number * 2 * SECOND
        rules = SenderRules(probe_bytes=probe_bytes)
        connection = Connection(Script([50 * MSS], start_ns=begin, rules=rules, scale=3, buffer=SMALL_BUFFER), number)
        connection.clock.at(begin, connection.receiver.pause)
        # Flow 1 loses the window update, so a probe finds the window open and its byte is accepted.
        connection.clock.at(begin + 1400 * MILLISECOND, connection.receiver.resume, 64 * MSS, probe_bytes == 1)
        connections.append(connection)
    about = (
        "A receiver that reads nothing for 1.4 s: the sender fills the window and probes the zero window, in flow 0 "
        "with no byte one below its edge as Linux does until the update, in flow 1 with the first byte above it."
    )
    save(path, truth_of(about, connections))


def make_window_full(path: Path) -> None:
    """The first flight fills the window; the receiver reads before it becomes zero."""
    connection = Connection(Script([60 * MSS], scale=3, buffer=10 * MSS))
    connection.clock.at(0, connection.receiver.pause)
    connection.clock.at(31_100_000, connection.receiver.resume, 64 * MSS, False)
    about = "Ten segments fill the receive window; the receiver reads while they arrive, and an update opens it again."
    save(path, truth_of(about, [connection]), order=BIG, tick_ns=1)


def make_keep_alives(path: Path) -> None:
    """Idle connections get keep-alives of 0 bytes and of 1, from either side."""
    connections = []
    for number, (by_sender, length) in enumerate([(True, 0), (True, 1), (False, 0), (False, 1)]):
        begin = number * 100 * MILLISECOND
        script = Script([3 * MSS + 300], start_ns=begin, upload=number != 3, close_ns=10 * SECOND)
        connection = Connection(script, number)
        for k in range(3):
            connection.clock.at(begin + (k + 1) * 3 * SECOND, connection.keep_alive, by_sender, length)
        connection.clock.at(begin + 11 * SECOND, connection.sender.write, 700)
        connections.append(connection)
    about = (
        "Four idle connections with keep-alives every 3 s: of no byte and of one byte of garbage (answered with "
        "DSACK), by who sent the data (flows 0, 1) and by who received it (flows 2, 3); then 700 bytes more."
    )
    save(path, truth_of(about, connections), pcapng=True, order=BIG)
