# SPDX-License-Identifier: Apache-2.0
"""Takes the frames out of the tracer's files, by their numbers, and removes the files."""

from __future__ import annotations

import struct
from pathlib import Path

PACKET, HEAD = 6, 28  # type of an enhanced packet block, and the bytes before its packet
NUMBER = HEAD + 14


class Frames:
    """How often each number was recorded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.counts = bytearray()
        self.files = self.packets = 0

    def take_files(self) -> None:
        """Counts the finished files."""
        for path in sorted(self.folder.rglob("*.pcapng")):
            if not path.name.startswith("."):
                self.take(path.read_bytes())
                path.unlink()

    def take(self, content: bytes) -> None:
        """Counts one file. Raises ValueError if it does not end with a whole block."""
        at, blocks = 0, struct.Struct("=II")
        while at < len(content):
            kind, length = blocks.unpack_from(content, at)
            if length < 12 or at + length > len(content):
                raise ValueError(f"a block of {length} bytes at {at} of {len(content)}")
            if kind == PACKET:
                (number,) = struct.unpack_from("!Q", content, at + NUMBER)
                if number >= len(self.counts):
                    self.counts.extend(bytes(number + 100_000 - len(self.counts)))
                self.counts[number] = min(255, self.counts[number] + 1)
                self.packets += 1
            at += length
        self.files += 1

    def gaps(self, first: int, last: int) -> list[tuple[int, int]]:
        """The spans of numbers that are missing in a range, each from its first to behind its last."""
        part = bytes(self.counts[first:last]).ljust(last - first, b"\0")
        spans: list[tuple[int, int]] = []
        begin = part.find(0)
        while begin >= 0:
            end = begin
            while end < len(part) and not part[end]:
                end += 1
            spans.append((first + begin, first + end))
            begin = part.find(0, end)
        return spans

    def doubled(self, first: int, last: int) -> int:
        return sum(count > 1 for count in self.counts[first:last])
