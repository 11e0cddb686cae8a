# SPDX-License-Identifier: Apache-2.0
"""Capture files, written byte by byte."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path


def write_pcap(path: Path, packets: Iterable[tuple[int, bytes]], snaplen: int = 262_144, link_type: int = 1) -> Path:
    """A pcap file with nanoseconds, in the order of the packets; the snap length cuts them."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, snaplen, link_type))
        for ns, data in packets:
            captured = data[:snaplen]
            file.write(struct.pack("<IIII", ns // 10**9, ns % 10**9, len(captured), len(data)) + captured)
    return path


# --- pcapng; `order` is that of the bytes in a number


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    size = struct.pack(order + "I", len(padded(body)) + 12)
    return struct.pack(order + "I", kind) + size + padded(body) + size


def option(code: int, value: bytes, order: str = "<") -> bytes:
    return struct.pack(order + "HH", code, len(value)) + padded(value)


def section(order: str = "<", options: bytes = b"") -> bytes:
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1) + options, order)


def interface(options: bytes = b"", order: str = "<", link_type: int = 1) -> bytes:
    return block(1, struct.pack(order + "HHI", link_type, 0, 0) + options, order)


def enhanced(
    ticks: int, data: bytes, number: int = 0, order: str = "<", length: int = 0, options: bytes = b""
) -> bytes:
    """A packet of the interface with that number; `length` is that on the wire if it was cut."""
    head = struct.pack(order + "IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, len(data), length or len(data))
    return block(6, head + padded(data) + options, order)


# --- what the capturing host knew


def secrets(kind: int, text: bytes, order: str = "<") -> bytes:
    """Decryption secrets, such as the key log of TLS (0x544C534B)."""
    return block(10, struct.pack(order + "II", kind, len(text)) + text, order)


def darwin_process(number: int, name: bytes, order: str = "<", options: bytes = b"") -> bytes:
    """A process as tcpdump of macOS writes it; packets name it by its place in the section."""
    return block(0x80000001, struct.pack(order + "I", number) + option(2, name, order) + options, order)


def wireshark_process(number: int, options: bytes = b"", order: str = "<") -> bytes:
    """A process as Wireshark writes it; packets name it by its number. Options are little-endian."""
    entry = struct.pack("<I", number) + options
    return block(0xBAD, struct.pack(order + "I", 32622) + struct.pack("<II", 3, len(entry)) + padded(entry), order)
