# SPDX-License-Identifier: Apache-2.0
"""Sends or receives blocks over UDP, and prints the report of wiretale-traffic: python block_ends.py send|receive COUNT.

The receiver answers each tenth block, and rests for a while in the middle, so that its socket overflows.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import sys
import time

ADDRESS = ("10.215.3.2", 6000)
RUN, LENGTH, END = 4242, 400, b"end of the test"
REST_S, BUFFER = 0.25, 4608


def snmp() -> dict[str, int]:
    """The kernel's counters of UDP."""
    with open("/proc/net/snmp") as file:
        heads, values = [line.split() for line in file if line.startswith("Udp:")]
    return dict(zip(heads[1:], map(int, values[1:]), strict=True))


def block(number: int) -> bytes:
    """common/block.h, its pattern left 0."""
    return struct.pack(">IIHHIQQ", 0x57544231, RUN, 0, 0, LENGTH, number, time.time_ns()).ljust(LENGTH, b"\0")


def send(count: int) -> dict[str, object]:
    """Paced by the clock."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect(ADDRESS)
        begin = time.monotonic()
        for number in range(count):
            sender.send(block(number))
            wait = begin + (number + 1) / 4000 - time.monotonic()
            if wait > 0:
                time.sleep(wait)
        time.sleep(0.5)
        with contextlib.suppress(ConnectionRefusedError):  # the receiver got the end and is gone
            for _ in range(20):
                sender.send(END)
                time.sleep(0.3)  # the receiver's buffer is small
    return {"sender": {"blocks_sent": count, "send_errors": {}}}


def receive(count: int) -> dict[str, object]:
    """Receives until the sender's end marker."""
    before, got, rested = snmp()["RcvbufErrors"], set(), False
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        receiver.bind(ADDRESS)
        receiver.settimeout(60)
        print("ready", file=sys.stderr, flush=True)
        while True:
            data, source = receiver.recvfrom(2000)
            if data == END:
                break
            number = struct.unpack(">Q", data[16:24])[0]
            got.add(number)
            if number % 10 == 0:
                receiver.sendto(b"answer %d" % number, source)
            if number > count // 2 and not rested:
                time.sleep(REST_S)
                rested = True
        dropped = snmp()["RcvbufErrors"] - before
    return {"receiver": {"blocks_received": len(got), "host_dropped": dropped, "host_dropped_source": "/proc/net/snmp"}}


if __name__ == "__main__":
    role, total = sys.argv[1], int(sys.argv[2])
    result = send(total) if role == "send" else receive(total)
    test = {"run": RUN, "protocol": "udp", "count": total}
    print(json.dumps({"schema": f"wiretale.{role}/1", "role": role, "test": test, "complete": True, **result}))
