# SPDX-License-Identifier: Apache-2.0
"""Sends numbered frames until SIGTERM, also while its interface goes and comes: python sender.py INTERFACE RATE PROGRESS

A number that could not be sent is tried again, so the numbers below the one in the file PROGRESS were all sent.
"""

from __future__ import annotations

import mmap
import signal
import socket
import struct
import sys
import time

HEAD = bytes.fromhex("020000000002 020000000001 88b5")
SIZE, BATCH = 100, 50
SOL_PACKET, PACKET_QDISC_BYPASS = 263, 20


def opened(interface: str) -> socket.socket:
    """A socket of the interface, once there is one. It passes over the queue, which drops frames without an error when the
    interface goes down."""
    while True:
        sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        sender.setsockopt(SOL_PACKET, PACKET_QDISC_BYPASS, 1)
        try:
            sender.bind((interface, 0))
        except OSError:
            sender.close()
            time.sleep(0.01)
        else:
            return sender


def main() -> None:
    """Sends in batches, and does not make up for the time in which it could not."""
    interface, rate = sys.argv[1], float(sys.argv[2])
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: stopped.append(number))
    with open(sys.argv[3], "r+b") as file:
        progress = mmap.mmap(file.fileno(), 8)
    padding = bytes(SIZE - len(HEAD) - 8)
    sender, number, due = opened(interface), 0, time.monotonic()
    while not stopped:
        try:
            sender.send(HEAD + struct.pack("!Q", number) + padding)
        except OSError:
            sender.close()
            time.sleep(0.01)
            sender = opened(interface)
            continue
        number += 1
        if number % BATCH == 0:
            progress[:] = struct.pack("=Q", number)
            due = max(due + BATCH / rate, time.monotonic() - 0.1)
            time.sleep(max(0.0, due - time.monotonic()))
    progress[:] = struct.pack("=Q", number)


if __name__ == "__main__":
    main()
