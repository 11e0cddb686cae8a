# SPDX-License-Identifier: Apache-2.0
"""Writes the first corpus of fuzz_file_recover: python3 make_corpus.py FOLDER SAMPLES...

Each capture becomes a file as wiretale-capture leaves it when it is killed (pcapng, and pcap with ns stamps): whole, cut
within its last block, and with zeros behind it as in a file whose room was reserved. Standard library only.
"""

import struct
import sys
from pathlib import Path

SECTION, INTERFACE, STATISTICS, PACKET = 0x0A0D0D0A, 1, 5, 6
PCAP_US, PCAP_NS = 0xA1B2C3D4, 0xA1B23C4D
APPLICATION = b"wiretale-capture"
PACKETS_MOST = 60  # of one file: short inputs are mutated better
ROOM = 4096


def option(code, value):
    """An option of a pcapng block."""
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)


def block(kind, body):
    """A pcapng block around its body."""
    size = 12 + len(body)
    return struct.pack("<II", kind, size) + body + struct.pack("<I", size)


def pcap_records(data):
    """Time in ns and bytes of each packet of a classic file in this byte order; empty for another file."""
    magic = struct.unpack_from("<I", data)[0]
    at, scale = 24, {PCAP_US: 1000, PCAP_NS: 1}.get(magic, 0)
    while scale and at + 16 <= len(data):
        second, part, size, _ = struct.unpack_from("<IIII", data, at)
        if at + 16 + size > len(data):
            return
        yield second * 10**9 + part * scale, data[at + 16 : at + 16 + size]
        at += 16 + size


def packet_block(interface, time_ns, data):
    """An enhanced packet block with its direction."""
    head = struct.pack("<IIIII", interface, time_ns >> 32, time_ns & 0xFFFFFFFF, len(data), len(data) + 4)
    return block(PACKET, head + data + bytes(-len(data) % 4) + option(2, struct.pack("<I", 1)) + bytes(4))


def as_pcapng(records):
    """A file without statistics: its writer was killed."""
    section = struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1) + option(4, APPLICATION + b" 0.1") + bytes(4)
    described = struct.pack("<HHI", 1, 0, 262144) + option(2, b"eth0") + option(9, b"\x09") + bytes(4)
    parts = [block(SECTION, section), block(INTERFACE, described), block(INTERFACE, described)]
    parts += [packet_block(i % 2, *record) for i, record in enumerate(records)]
    return b"".join(parts)


def statistics(interface):
    """The statistics block that a finished file ends with."""
    counts = b"".join(option(code, struct.pack("<Q", 7)) for code in (4, 5, 6, 7, 8))
    return block(STATISTICS, struct.pack("<III", interface, 0, 1) + counts + bytes(4))


def as_pcap(records):
    """A classic file, ns."""
    head = struct.pack("<IHHiIII", PCAP_NS, 2, 4, 0, 0, 262144, 1)
    return head + b"".join(
        struct.pack("<IIII", time // 10**9, time % 10**9, len(data), len(data)) + data for time, data in records
    )


def main():
    """Seven variants of each capture."""
    folder = Path(sys.argv[1])
    for name in sys.argv[2:]:
        records = list(pcap_records(Path(name).read_bytes()))[:PACKETS_MOST]
        if not records:
            continue
        pcapng, classic = as_pcapng(records), as_pcap(records)
        variants = {
            "whole": pcapng + statistics(0) + statistics(1),
            "open": pcapng,
            "cut": pcapng[:-7],
            "room": pcapng + bytes(ROOM),
            "classic": classic,
            "classic-cut": classic[:-7],
            "classic-room": classic + bytes(ROOM),
        }
        for variant, data in variants.items():
            (folder / f"{Path(name).stem}-{variant}").write_bytes(data)


if __name__ == "__main__":
    main()
