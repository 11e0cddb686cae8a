# SPDX-License-Identifier: Apache-2.0
"""A QUIC connection whose payload is not encrypted but empty: long headers of the handshake, and what a test sends."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from plain_wire import Wire

CLIENT, SERVER = ("10.0.0.1", 40000), ("10.0.0.2", 443)
INITIAL, HANDSHAKE = 0xC3, 0xE3


def long_header(first: int, destination: bytes, source: bytes, size: int) -> bytes:
    """A packet of version 1 with zeros from the packet number on."""
    head = bytes([first]) + struct.pack("!I", 1)
    head += bytes([len(destination)]) + destination + bytes([len(source)]) + source
    head += b"\0" if first == INITIAL else b""
    left = size - len(head) - 2
    return head + struct.pack("!H", 0x4000 | left) + bytes(left)


@dataclass
class Quic:
    """A connection on a wire; side 0 is the client."""

    wire: Wire
    client: tuple[str, int] = CLIENT
    server: tuple[str, int] = SERVER

    def send(self, ms: float, side: int, payload: bytes) -> Quic:
        ends = (self.client, self.server)
        (source, port), (target, target_port) = ends[side], ends[1 - side]
        self.wire.ip(ms, source, target, 17, struct.pack("!HHHH", port, target_port, 8 + len(payload), 0) + payload)
        return self

    def open(self, ms: float = 0.0, server_ms: float = 15.0, client_ms: float = 5.0) -> Quic:
        """A handshake; its round trips from the capture point to the server and to the client."""
        self.send(ms, 0, long_header(INITIAL, b"original", b"client", 1200))
        self.send(ms + server_ms, 1, long_header(INITIAL, b"client", b"server-1", 1200))
        answer = long_header(INITIAL, b"server-1", b"client", 60) + long_header(HANDSHAKE, b"server-1", b"client", 1140)
        return self.send(ms + server_ms + client_ms, 0, answer)
