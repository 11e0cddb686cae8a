# SPDX-License-Identifier: Apache-2.0
"""Samples in which TCP loses segments upstream or downstream of the capture point, with each kind of recovery."""

from __future__ import annotations

from pathlib import Path

from event_clock import Clock
from packet_fate import BESIDE_RECEIVER, BESIDE_SENDER, MIDWAY, Distance, Fate
from sample_files import save_pcap, save_pcapng, truth_of
from tcp_connection import Connection, Script
from tcp_sender import SenderRules
from write_captures import BIG, MILLISECOND

MSS = 1448
UPSTREAM = Fate(lost="upstream")
DOWNSTREAM = Fate(lost="downstream")


def talk(number: int, clock: Clock, script: Script, *writes: int) -> Connection:
    """Starts a connection 700 ms after the one before it."""
    script.start_ns = number * 700 * MILLISECOND
    return Connection(clock, script, number).write(*writes)


def make_fast_retransmissions(path: Path) -> None:
    """Loses one segment, later two of one window, upstream and downstream."""
    clock = Clock()
    connections = [
        talk(number, clock, Script(upload=upload, distance=MIDWAY, fates=dict.fromkeys(lost, fate)), 100 * MSS)
        for number, (upload, fate) in enumerate([(True, UPSTREAM), (True, DOWNSTREAM), (False, UPSTREAM)])
        for lost in [[(14, 0), (61, 0), (64, 0)]]
    ]
    clock.run()
    about = (
        "Captured midway: flow 0 loses segments upstream of the capture point, flow 1 downstream, flow 2 is a "
        "download that loses upstream; all are fast retransmissions, after SACKs of three segments."
    )
    save_pcap(path, truth_of(about, connections))


def make_timeouts(path: Path) -> None:
    """Losses without enough segments behind them for fast retransmit, and a lost retransmission."""
    clock = Clock()
    tail = {(37, 0): DOWNSTREAM}
    third_last = {(37, 0): UPSTREAM}
    twice = {(20, 0): DOWNSTREAM, (20, 1): DOWNSTREAM}
    connections = [
        talk(0, clock, Script(fates=tail), 38 * MSS, 400),
        talk(1, clock, Script(distance=MIDWAY, fates=third_last), 40 * MSS),
        talk(2, clock, Script(fates=twice), 60 * MSS),
    ]
    clock.run()
    about = (
        "Timeouts of 250 ms: a loss downstream with one segment behind it, one upstream with two behind it, "
        "and one downstream whose fast retransmission is lost too."
    )
    save_pcap(path, truth_of(about, connections))


def make_lost_tail(path: Path) -> None:
    """Loses the last segment upstream, so the capture has no gap."""
    clock = Clock()
    script = Script(distance=BESIDE_RECEIVER, fates={(23, 0): UPSTREAM})
    connections = [talk(0, clock, script, 23 * MSS + 700)]
    clock.run()
    about = (
        "Captured beside the receiver: the last segment is lost upstream and retransmitted after an RTO, so it "
        "appears once, in order; only the pause, TSval and a missing IP ID prove the loss."
    )
    save_pcap(path, truth_of(about, connections))


def make_go_back_n(path: Path) -> None:
    """Delays three segments for 300 ms and loses two; the RTO retransmits all five."""
    clock = Clock()
    late = Fate(stalled_ns=300 * MILLISECOND)
    fates = {(25, 0): late, (26, 0): Fate(), (27, 0): Fate(), (28, 0): DOWNSTREAM, (29, 0): DOWNSTREAM}
    connections = [talk(0, clock, Script(every=1, fates=fates), 25 * MSS)]
    clock.at(200 * MILLISECOND, connections[0].sender.write, 5 * MSS)
    connections[0].script.close_ns = 210 * MILLISECOND
    clock.run()
    about = (
        "A path that stalls for 300 ms downstream of the capture point: the RTO after 250 ms retransmits five "
        "segments; three had arrived, as DSACK proves, the other two were lost."
    )
    save_pcap(path, truth_of(about, connections), tick_ns=1)


def make_tail_loss_probes(path: Path) -> None:
    """Loses the last acknowledgment or the last segment; a probe follows 42 ms later in both flows."""
    clock = Clock()
    rules = SenderRules(tail_probe_ns=42 * MILLISECOND)
    ack_lost = Script(rules=rules, ack_fates={(30 * MSS, 0): UPSTREAM})
    data_lost = Script(rules=rules, upload=False, distance=BESIDE_SENDER, fates={(30, 0): DOWNSTREAM})
    connections = [talk(0, clock, ack_lost, 30 * MSS), talk(1, clock, data_lost, 31 * MSS)]
    clock.run()
    about = (
        "Tail-loss probes after two round trips: in flow 0 only the last acknowledgment was lost and DSACK answers "
        "the probe; in flow 1 the last segment was lost and the probe repairs it."
    )
    save_pcapng(path, truth_of(about, connections), order=BIG)


def make_reordering(path: Path) -> None:
    """Segments overtake others upstream of the capture point."""
    clock = Clock()
    near = Distance(6 * MILLISECOND, 4 * MILLISECOND)
    swapped = {(16, 0): Fate(late_ns=170_000), (40, 0): Fate(late_ns=170_000)}
    by_four = {(24, 0): Fate(late_ns=4 * 120_000 + 50_000)}
    patient = SenderRules(sacked_needed=8)  # Linux raises this if a path reorders
    connections = [
        talk(0, clock, Script(distance=near, fates=swapped), 60 * MSS),
        talk(1, clock, Script(distance=near, fates=by_four, rules=patient), 60 * MSS),
        talk(2, clock, Script(distance=near, fates=by_four), 60 * MSS),
    ]
    clock.run()
    about = (
        "Reordering: two pairs of neighbors swapped, 50 µs apart; a segment late by four without a retransmission; "
        "the same with a spurious fast retransmission, answered by DSACK."
    )
    save_pcap(path, truth_of(about, connections), order=BIG, tick_ns=1)


def make_network_duplicate(path: Path) -> None:
    """The network copies one segment; the copy arrives 3 ms later."""
    clock = Clock()
    script = Script(distance=MIDWAY, fates={(19, 0): Fate(copy_ns=3 * MILLISECOND)})
    connections = [talk(0, clock, script, 60 * MSS)]
    clock.run()
    about = "The network delivers one segment twice, 3 ms apart with the same IP id; DSACK proves that both arrived."
    save_pcap(path, truth_of(about, connections), order=BIG)
