# SPDX-License-Identifier: Apache-2.0
"""pcapng files that name the process of packets, and have decryption secrets: python process_captures.py FOLDER writes them, for
fuzzing."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

from capture_files import block, darwin_process, enhanced, interface, option, secrets, section, wireshark_process

TLS, WIREGUARD = 0x544C534B, 0x57474B4C
BASE_US = 1_757_500_000_000_000
Flow = tuple[int, int | None, str | None]


def packet(after_us: int, port: int, options: bytes = b"", order: str = "<") -> bytes:
    datagram = struct.pack("!HHHH", port, 5000, 12, 0) + b"data"
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 32, port, 0, 64, 17, 0, b"\n\0\0\1", b"\n\0\0\2")
    frame = bytes(6) + b"\2" + bytes(5) + b"\x08\0" + header + datagram
    return enhanced(BASE_US + after_us, frame, 0, order, options=options)


def by_id(number: int, thread: int = 0, order: str = "<") -> bytes:
    return option(8, struct.pack(order + "II", number, thread), order)


def by_block(number: int, order: str = ">", code: int = 0x8001) -> bytes:
    return option(code, struct.pack(order + "I", number), order)


def started(name: bytes, after_us: int) -> bytes:
    return option(2, name) + option(9, struct.pack("<Q", (BASE_US + after_us) * 1000))


# Two sections of two hosts, which gave one number to two programs.
OF_WIRESHARK = (
    section()
    + interface()
    + secrets(TLS, b"CLIENT_RANDOM aa bb")
    + wireshark_process(77, option(2, b"curl") + option(4, b"curl\0-v"))
    + packet(1, 1001, by_id(77, 5))
    + block(0xBAD, struct.pack("<I", 4711) + b"anything")
    + packet(2, 1002, by_id(78))
    + section(">")
    + interface(order=">")
    + secrets(WIREGUARD, b"LOCAL_STATIC", ">")
    + wireshark_process(77, option(2, b"sshd"), ">")
    + packet(3, 1003, by_id(77, order=">"), ">")
)
# Port 2001 changes hands, 2005 names a block that the section has not.
OF_MACOS = (
    section(">")
    + interface(order=">")
    + darwin_process(501, b"Safari", ">", option(4, bytes(range(16)), ">"))
    + darwin_process(1, "l\u00e4unchd".encode(), ">")
    + packet(1, 2001, by_block(0) + by_block(7, code=0x8002) + option(0x8006, b"\1\2", ">"), ">")
    + packet(2, 2002, by_block(1), ">")
    + packet(3, 2003, by_block(0) + by_block(1, code=0x8003), ">")
    + packet(4, 2001, by_block(1), ">")
    + packet(5, 2005, by_block(2), ">")
)
# The example of Wireshark: an id is used again, and the start of a process tells whose packet it is.
REUSED = (
    section()
    + interface()
    + b"".join(wireshark_process(500, started(*process)) for process in ((b"first", -10), (b"second", 20)))
    + b"".join(wireshark_process(600, option(2, name)) for name in (b"old", b"new"))
    + b"".join(
        packet(*at, by_id(number))
        for at, number in (((5, 3001), 500), ((25, 3002), 500), ((-100, 3003), 500), ((1, 3004), 600), ((2, 3005), 700))
    )
)
FILES: dict[str, tuple[bytes, list[Flow]]] = {
    "wireshark": (OF_WIRESHARK, [(1001, 77, "curl"), (1002, 78, None), (1003, 77, "sshd")]),
    "macos": (OF_MACOS, [(2001, None, None), (2002, 1, "l\u00e4unchd"), (2003, 501, "Safari"), (2005, None, None)]),
    "reused": (
        REUSED,
        [(3001, 500, "first"), (3002, 500, "second"), (3003, 500, "first"), (3004, 600, "new"), (3005, 700, None)],
    ),
    "in-order": (
        section()
        + interface()
        + b"".join(
            wireshark_process(9, option(2, name)) + packet(at, 4000 + at, by_id(9))
            for at, name in enumerate((b"one", b"two"), 1)
        ),
        [(4001, 9, "one"), (4002, 9, "two")],
    ),
}

if __name__ == "__main__":
    for name, (content, _) in FILES.items():
        Path(sys.argv[1], f"{name}.pcapng").write_bytes(content)
