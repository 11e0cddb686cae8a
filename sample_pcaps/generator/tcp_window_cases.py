# SPDX-License-Identifier: Apache-2.0
"""Samples that the receiver limits: zero windows with probes, full windows, keep-alives."""

from __future__ import annotations

from pathlib import Path

from event_clock import Clock
from sample_files import save_pcap, save_pcapng, truth_of
from tcp_connection import Connection, Script
from tcp_sender import SenderRules
from write_captures import BIG, MILLISECOND, SECOND

MSS = 1448
SMALL_BUFFER = 16 * MSS


def make_zero_window(path: Path) -> None:
    """The receiver's application reads nothing for 1.4 s; the sender probes with 0 bytes, then with 1."""
    clock = Clock()
    connections = []
    for number, probe_bytes in enumerate((0, 1)):
        begin = number * 2 * SECOND
        script = Script(begin, rules=SenderRules(probe_bytes=probe_bytes), scale=3, buffer=SMALL_BUFFER)
        connection = Connection(clock, script, number).write(50 * MSS)
        clock.at(begin, connection.receiver.pause)
        # Flow 1 loses the window update, so a probe finds the window open and its byte is accepted.
        clock.at(begin + 1400 * MILLISECOND, connection.receiver.resume, 64 * MSS, probe_bytes == 1)
        connections.append(connection)
    clock.run()
    about = (
        "A receiver that reads nothing for 1.4 s: the sender fills the window and probes the zero window, in flow 0 "
        "with no byte one below its edge as Linux does until the update, in flow 1 with the first byte above it."
    )
    save_pcap(path, truth_of(about, connections))


def make_window_full(path: Path) -> None:
    """The first flight fills the window; the receiver reads before it becomes zero."""
    clock = Clock()
    connection = Connection(clock, Script(scale=3, buffer=10 * MSS)).write(60 * MSS)
    clock.at(0, connection.receiver.pause)
    clock.at(31_100_000, connection.receiver.resume, 64 * MSS, False)
    clock.run()
    about = "Ten segments fill the receive window; the receiver reads while they arrive, and an update opens it again."
    save_pcap(path, truth_of(about, [connection]), order=BIG, tick_ns=1)


def make_keep_alives(path: Path) -> None:
    """Idle connections get keep-alives of 0 bytes and of 1, from either side."""
    clock = Clock()
    connections = []
    for number, (by_sender, length) in enumerate([(True, 0), (True, 1), (False, 0), (False, 1)]):
        begin = number * 100 * MILLISECOND
        script = Script(begin, upload=number != 3, close_ns=10 * SECOND)
        connection = Connection(clock, script, number).write(3 * MSS + 300)
        for k in range(3):
            clock.at(begin + (k + 1) * 3 * SECOND, connection.keep_alive, by_sender, length)
        clock.at(begin + 11 * SECOND, connection.sender.write, 700)
        connections.append(connection)
    clock.run()
    about = (
        "Four idle connections with keep-alives every 3 s: of no byte and of one byte of garbage (answered with "
        "DSACK), by who sent the data (flows 0, 1) and by who received it (flows 2, 3); then 700 bytes more."
    )
    save_pcapng(path, truth_of(about, connections), order=BIG)
