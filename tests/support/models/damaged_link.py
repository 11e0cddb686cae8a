# SPDX-License-Identifier: Apache-2.0
"""A host behind a link that damages packets: the kernel of a network namespace, which counts those that it discards.

`unshare -n python damaged_link.py CAPTURE` writes the packets as they cross the end of the link, and prints the counters.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import select
import socket
import struct
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

HOST, PEER = "10.9.0.1", "10.9.0.2"
ICMP, TCP, UDP = 1, 6, 17
SYN, ACK = 2, 16
TUN_SET_INTERFACE, TUN, NO_HEADER = 0x400454CA, 0x0001, 0x1000  # linux/if_tun.h
RAW_IP = 101  # link type
PACKETS, SIZE, DAMAGED_SHARE = 100, 500, 0.1


def checksum(data: bytes) -> int:
    """RFC 1071."""
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ip_packet(protocol: int, body: bytes, place: int) -> bytes:
    """A packet from the peer, with the checksum of its transport header at `place`."""
    ends = socket.inet_aton(PEER) + socket.inet_aton(HOST)
    pseudo = b"" if protocol == ICMP else ends + struct.pack("!HH", protocol, len(body))
    body = body[:place] + struct.pack("!H", checksum(pseudo + body) or 0xFFFF) + body[place + 2 :]
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), 0, 0x4000, 64, protocol, 0) + ends
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + body


@dataclass
class Link:
    """A TUN device: what is written to it arrives at the host."""

    device: int
    chance: random.Random = field(default_factory=lambda: random.Random(1))
    records: list[bytes] = field(default_factory=list)

    def record(self, packet: bytes) -> None:
        """Keeps a packet as a record of a capture."""
        seconds, ns = divmod(time.time_ns(), 10**9)
        self.records.append(struct.pack("<IIII", seconds, ns // 1000, len(packet), len(packet)) + packet)

    def send(self, packet: bytes, damaged: bool = False) -> None:
        """A packet arrives at the host; one bit of its payload is another if it is damaged."""
        if damaged:
            place = len(packet) - 1 - self.chance.randrange(SIZE)
            packet = packet[:place] + bytes([packet[place] ^ 1 << self.chance.randrange(8)]) + packet[place + 1 :]
        self.record(packet)
        os.write(self.device, packet)

    def received(self, seconds: float) -> list[bytes]:
        """The packets that the host sends until none comes for so long."""
        packets = []
        while select.select([self.device], [], [], seconds)[0]:
            packets.append(os.read(self.device, 65536))
            self.record(packets[-1])
        return packets

    def damages(self) -> bool:
        """Draws whether the next packet is damaged."""
        return self.chance.random() < DAMAGED_SHARE


def open_link() -> Link:
    """The device of the namespace."""
    device = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(device, TUN_SET_INTERFACE, struct.pack("16sH", b"link0", TUN | NO_HEADER))
    for command in (f"address add {HOST}/24 dev link0", "link set link0 up", "link set lo up"):
        subprocess.run(["ip", *command.split()], check=True)
    return Link(device)


def send_datagrams(link: Link) -> None:
    """A socket reads all, because the kernel verifies a checksum when it copies the payload."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as reader:
        reader.bind((HOST, 5000))
        reader.setblocking(False)
        for number in range(PACKETS):
            payload = struct.pack("!I", number) + b"datagram" * (SIZE // 8)
            link.send(
                ip_packet(UDP, struct.pack("!HHHH", 4000, 5000, 8 + len(payload), 0) + payload, 6), link.damages()
            )
            try:
                reader.recv(65536)
            except BlockingIOError:
                continue


def send_echo_requests(link: Link) -> None:
    """The kernel answers those that are not damaged."""
    for number in range(PACKETS):
        body = struct.pack("!BBHHH", 8, 0, 0, 7, number) + b"echo" * (SIZE // 4)
        link.send(ip_packet(ICMP, body, 2), link.damages())
        link.received(0.001)


def segment(at: int, ack: int, flags: int, payload: bytes = b"") -> bytes:
    """A TCP segment of the peer."""
    header = struct.pack("!HHIIBBHHH", 4001, 80, 1000 + at, ack, 5 << 4, flags, 60000, 0, 0)
    return ip_packet(TCP, header + payload, 16)


def send_segments(link: Link) -> None:
    """Each segment is sent until it is acknowledged."""
    with socket.create_server((HOST, 80)) as listener:
        link.send(segment(0, 0, SYN))
        (answer,) = [packet for packet in link.received(0.1) if packet[9] == TCP]
        ack = struct.unpack_from("!I", answer, 24)[0] + 1
        link.send(segment(1, ack, ACK))
        connection, _ = listener.accept()
        with connection:
            for number in range(PACKETS):
                damaged = link.damages()
                payload = struct.pack("!I", number) + b"data" * (SIZE // 4)
                if damaged:
                    link.send(segment(1 + number * len(payload), ack, ACK, payload), damaged)
                    time.sleep(0.25)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
                link.send(segment(1 + number * len(payload), ack, ACK, payload))
                connection.recv(65536)
                link.received(0.005)


def counters() -> dict[str, int]:
    """InCsumErrors of each protocol."""
    rows = [line.split() for line in Path("/proc/net/snmp").read_text().splitlines()]
    tables = {
        names[0]: dict(zip(names[1:], values[1:], strict=True))
        for names, values in zip(rows[::2], rows[1::2], strict=True)
    }
    return {name.lower(): int(tables[f"{name}:"]["InCsumErrors"]) for name in ("Tcp", "Udp", "Icmp")}


def main(capture: Path) -> None:
    link = open_link()
    send_datagrams(link)
    send_echo_requests(link)
    send_segments(link)
    capture.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, RAW_IP) + b"".join(link.records))
    print(json.dumps(counters()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
