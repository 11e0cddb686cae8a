# SPDX-License-Identifier: Apache-2.0
"""Traffic of many flows in files of equal time, as a rotating capture writes them: flows cross the files."""

from __future__ import annotations

import random
from pathlib import Path

from capture_files import write_pcap
from plain_wire import ACK, FIN, MSS, PSH, RST, START_NS, SYN, Connection, Wire

HOSTS = 40


def ends_of(draw: random.Random) -> tuple[str, str]:
    """Two addresses."""
    return f"10.1.0.{draw.randrange(1, HOSTS)}", f"10.2.0.{draw.randrange(1, HOSTS)}"


def add_connection(wire: Wire, draw: random.Random, ms: float, lasts_ms: float, port: int) -> None:
    """A connection that sends data at random times, loses some, and is closed, reset or left open."""
    connection = Connection(wire, port, ends_of(draw)).open(ms)
    times = sorted(ms + 50 + draw.random() * lasts_ms for _ in range(draw.randrange(2, 30)))
    at = 0
    for time in times:
        lost = draw.random() < 0.1
        if not lost:
            connection.data(time, at, flags=ACK | PSH)
        else:
            connection.data(time + 40, at)
        at += MSS
        connection.ack(time + 60, at)
    last = ms + lasts_ms + 200
    how = draw.random()
    if how < 0.6:
        connection.send(last, 0, at, flags=FIN | ACK).send(last + 20, 1, 0, flags=FIN | ACK, ack=at + 1)
        connection.send(last + 40, 0, at + 1, ack=1)
    elif how < 0.8:
        connection.send(last, 1, 0, flags=RST)
    if how < 0.3:  # the same ports, a little later
        again = connection.send(last + 5_000, 0, 70_000, flags=SYN)
        again.send(last + 5_020, 1, 90_000, flags=SYN | ACK, ack=70_001)
        again.send(last + 5_040, 0, 70_001, ack=90_001)


def traffic(seed: int, seconds: float, flows: int, longest: float) -> Wire:
    """Flows that begin at random times and take up to `longest` seconds, most of them little."""
    draw = random.Random(seed)
    wire = Wire()
    for number in range(flows):
        ms = draw.random() * seconds * 1000
        lasts = longest * 1000 * draw.random() ** 3
        if number % 3:
            add_connection(wire, draw, ms, lasts, 20_000 + number)
        else:
            source, target = ends_of(draw)
            for _ in range(draw.randrange(1, 12)):
                wire.udp(ms + draw.random() * lasts, bytes(draw.randrange(20, 900)), 20_000 + number, source, target)
    return wire


def rotated(wire: Wire, every: float, first_number: int = 1) -> list[tuple[str, list[tuple[int, bytes]]]]:
    """Name and packets of each file of so many seconds, as wiretale-capture names them."""
    files: dict[int, list[tuple[int, bytes]]] = {}
    for ms, frame in sorted(wire.packets, key=lambda packet: packet[0]):
        files.setdefault(int(ms / 1000 / every), []).append((START_NS + round(ms * 1e6), frame))
    return [
        (f"eth0_20231114T{221320 + place:06}.{place:09}Z_{place + first_number:05}.pcap", packets)
        for place, packets in enumerate(files[number] for number in sorted(files))
    ]


def write_files(folder: Path, files: list[tuple[str, list[tuple[int, bytes]]]]) -> list[Path]:
    """Writes the files."""
    folder.mkdir(exist_ok=True)
    return [publish(folder, name, packets) for name, packets in files]


def publish(folder: Path, name: str, packets: list[tuple[int, bytes]]) -> Path:
    """Publishes a file by a rename, as wiretale-capture does."""
    return write_pcap(folder / f".{name}.part", packets).rename(folder / name)
