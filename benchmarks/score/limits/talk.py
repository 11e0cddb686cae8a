# SPDX-License-Identifier: Apache-2.0
"""The sender of a scenario: talk.py HOST ORDER, in a network namespace; ORDER is a LimitTalk as JSON. host_talk.py receives.

Prints a Sample as a JSON list per line, from the first write until nothing is left to send. The kernel updates busy_us,
window_us and buffer_us itself; the other fields are states, so samples must be closer than a round trip.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import threading
import time
from typing import Any, NamedTuple

PORT = 41_900
INTERVAL = 0.004  # s, a tick of the kernel (250 Hz)
TCP_CC_INFO = 26  # not in the module socket
BYTES, CC_BYTES = 232, 20  # of struct tcp_info and tcp_bbr_info that are read
# Offsets in struct tcp_info: of bytes, of 32-bit and of 64-bit members.
CA_STATE, MSS, UNACKED, RTT, SSTHRESH, CWND, NOT_SENT, MIN_RTT, WINDOW = 1, 16, 24, 68, 76, 80, 144, 148, 228
ACKED, BUSY = 120, 168  # BUSY is followed by the times limited by the receive window and by the send buffer
PACING_GAIN, STARTUP_GAIN = 12, 700  # of tcp_bbr_info: 2.77 x 256 and more only in startup


class Sample(NamedTuple):
    """The state of the sender's socket at one time."""

    time_ns: int
    busy_us: int  # data in flight or waiting
    window_us: int  # of these, limited by the receive window
    buffer_us: int  # of these, limited by the send buffer
    ca_state: int  # 3: recovery, 4: loss
    acked: int  # bytes
    not_sent: int  # bytes
    writing: bool  # a write has not returned
    flight: int  # packets
    cwnd: int  # packets
    full: bool  # the receive window has no room for another segment
    grows: bool  # slow start: cwnd below ssthresh, or BBR's startup
    rtt_us: int
    min_rtt_us: int


def sample(connection: socket.socket, writing: threading.Event) -> Sample:
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, BYTES)
    control = connection.getsockopt(socket.IPPROTO_TCP, TCP_CC_INFO, CC_BYTES)
    mss, flight, rtt, ssthresh, cwnd, not_sent, min_rtt, window = (
        struct.unpack_from("=I", info, at)[0] for at in (MSS, UNACKED, RTT, SSTHRESH, CWND, NOT_SENT, MIN_RTT, WINDOW)
    )
    busy, window_limited, buffer_limited = struct.unpack_from("=3Q", info, BUSY)
    (acked,) = struct.unpack_from("=Q", info, ACKED)
    bbr = struct.unpack_from("=I", control, PACING_GAIN)[0] if len(control) == CC_BYTES else None
    return Sample(
        time_ns=time.time_ns(),
        busy_us=busy,
        window_us=window_limited,
        buffer_us=buffer_limited,
        ca_state=info[CA_STATE],
        acked=acked,
        not_sent=not_sent,
        writing=writing.is_set(),
        flight=flight,
        cwnd=cwnd,
        full=(flight + 1) * mss > window,
        grows=cwnd < ssthresh if bbr is None else bbr >= STARTUP_GAIN,
        rtt_us=rtt,
        min_rtt_us=min_rtt,
    )


def write(connection: socket.socket, order: dict[str, Any], writing: threading.Event) -> None:
    """Writes for `seconds`, or until `bytes` are written if there is a number of bytes."""
    data, left = bytes(order["chunk"]), order["bytes"]
    begin = due = time.monotonic()
    while time.monotonic() - begin < order["seconds"] and (left > 0 or not order["bytes"]):
        writing.set()
        connection.sendall(data)
        writing.clear()
        left -= len(data)
        if order["pause"]:
            due = max(due + order["pause"], time.monotonic())
            time.sleep(max(due - time.monotonic(), 0))


def send(host: str, order: dict[str, Any]) -> None:
    with socket.socket() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, order["control"].encode())
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if order["send_buffer"]:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, order["send_buffer"])
        connection.connect((host, PORT))
        connection.settimeout(60)
        writing = threading.Event()
        writer = threading.Thread(target=write, args=(connection, order, writing))
        samples = [sample(connection, writing)]
        writer.start()
        while writer.is_alive() or samples[-1].not_sent:
            time.sleep(INTERVAL)
            samples.append(sample(connection, writing))
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1024):  # the receiver closes once it has read all
            pass
    print("\n".join(map(json.dumps, samples)))


if __name__ == "__main__":
    send(sys.argv[1], json.loads(sys.argv[2]))
