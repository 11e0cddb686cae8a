# SPDX-License-Identifier: Apache-2.0
"""Any frame of a capture, read at the cost of one seek.

Every 256th frame has a checkpoint, the offset of its record. A frame is cut out with the header blocks that it needs, so
that tshark decodes a file of one frame and never searches a large one. A compressed capture is decompressed from a point near
the frame (analyzer/core/input/seek_points.h), in blocks that are kept for the frames around it.
"""

from __future__ import annotations

import os
import struct
from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from threading import Lock

from wiretale.analyzer import _core
from wiretale.analyzer.errors import InputError

EVERY = 256  # frames between checkpoints
BLOCK = 1 << 20  # bytes of a compressed capture that are decompressed at once
BLOCKS_KEPT = 16
SPACING = 4 << 20  # decompressed bytes between seek points; four times as many are decompressed for a frame at most
POINTS_MOST = 8192  # if there would be more, the spacing doubles
RECORD_MAX = 128 << 20  # bytes, the greatest packet of any link type
PCAP_HEADER = 24
PCAP_RECORD_HEADERS = {0xA1B2C3D4: 16, 0xA1B23C4D: 16, 0xA1B2CD34: 24}  # by magic number
FRAME_BLOCKS = (2, 3, 6, 9)  # pcapng: obsolete, simple and enhanced packets, journal entries
CUSTOM_BLOCKS = (0xBAD, 0x40000BAD)
PEN_WIRESHARK, ENTRY_PROCESS = 32622, 3
BYTE_ORDER_MAGIC = 0x1A2B3C4D
SECTION = 0x0A0D0D0A


class PlainBytes:
    """The bytes of a capture by their offset."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, offset: int, size: int) -> bytes:
        """Returns at most `size` bytes from `offset`."""
        with self._path.open("rb") as file:
            return os.pread(file.fileno(), size, offset)


class CompressedBytes:
    """The bytes of a compressed capture by their offset; the last blocks are kept for a walk over frames."""

    def __init__(self, path: Path, points: bytes, store: Path) -> None:
        self._path = path
        self._points = points
        self._store = store
        self._kept: OrderedDict[int, bytes] = OrderedDict()
        self._lock = Lock()  # frames are asked for by several threads

    def read(self, offset: int, size: int) -> bytes:
        """Returns at most `size` bytes from `offset`."""
        parts = []
        with self._lock:
            for number in range(offset // BLOCK, (offset + size - 1) // BLOCK + 1):
                parts.append(self._block(number))
                if len(parts[-1]) < BLOCK:  # the last one
                    break
        begin = offset % BLOCK
        return b"".join(parts)[begin : begin + size]

    def _block(self, number: int) -> bytes:
        if number in self._kept:
            self._kept.move_to_end(number)
            return self._kept[number]
        with self._store.open("rb") as store:
            data = _core.seek_read(str(self._path), self._points, store.fileno(), number * BLOCK, BLOCK)
        self._kept[number] = data
        if len(self._kept) > BLOCKS_KEPT:
            self._kept.popitem(last=False)
        return data


def numbers_of(data: bytes) -> array[int]:
    """Returns the 64-bit numbers of the core."""
    numbers = array("Q")
    numbers.frombytes(data)
    return numbers


class FrameIndex:
    """The checkpoints of one capture file, as files with a common stem in a folder."""

    def __init__(self, capture: str, stem: Path) -> None:
        self._name = capture
        checkpoints = numbers_of(stem.with_suffix(".frames").read_bytes())
        self._frames, self._offsets = checkpoints[::2], checkpoints[1::2]
        headers = numbers_of(stem.with_suffix(".headers").read_bytes())
        self._headers = list(zip(headers[::4], headers[1::4], headers[2::4], headers[3::4], strict=True))
        points = stem.with_suffix(".points")
        self._bytes: PlainBytes | CompressedBytes = PlainBytes(Path(capture))
        if points.exists():
            self._bytes = CompressedBytes(Path(capture), points.read_bytes(), stem.with_suffix(".store"))

    @staticmethod
    def make(capture: str, stem: Path) -> int:
        """Reads the capture, writes the files and returns the number of frames."""
        compression, frames, checkpoints, headers = _core.frame_index(capture, EVERY)
        stem.with_suffix(".frames").write_bytes(checkpoints)
        stem.with_suffix(".headers").write_bytes(headers)
        if compression:
            with stem.with_suffix(".store").open("wb") as store:
                stem.with_suffix(".points").write_bytes(
                    _core.seek_points(capture, store.fileno(), SPACING, POINTS_MOST)
                )
        return frames

    def cut(self, frame: int) -> bytes:
        """Returns a capture file of this frame alone. Raises InputError if the file has no such frame."""
        first = self._bytes.read(0, PCAP_HEADER)
        records = self._pcapng_frames(frame) if first[:4] == SECTION.to_bytes(4, "little") else self._pcap_frames(frame)
        for number, record in records:
            if number == frame:
                return record
        raise InputError(f"{self._name}: has no frame {frame:,}")

    def _start(self, frame: int) -> tuple[int, int]:
        """Returns the frames before the checkpoint of a frame, and its offset."""
        place = bisect_right(self._frames, frame - 1) - 1
        if frame < 1 or place < 0:
            raise InputError(f"{self._name}: has no frame {frame:,}")
        return self._frames[place], self._offsets[place]

    def _whole(self, offset: int, size: int) -> bytes:
        """Returns a record; InputError if it is not whole, because the file then is not the one that was indexed."""
        data = self._bytes.read(offset, size) if size <= RECORD_MAX else b""
        if len(data) < size:
            raise InputError(f"{self._name}: at byte {offset}: expected a record of {size} bytes, found {len(data)}")
        return data

    def _pcap_frames(self, frame: int) -> Iterator[tuple[int, bytes]]:
        """Yields the frames of a pcap file from the checkpoint on, each as a file."""
        header = self._whole(0, PCAP_HEADER)
        order = "<" if struct.unpack("<I", header[:4])[0] in PCAP_RECORD_HEADERS else ">"
        size = PCAP_RECORD_HEADERS[struct.unpack(f"{order}I", header[:4])[0]]
        (minor,) = struct.unpack(f"{order}H", header[6:8])
        number, offset = self._start(frame)
        while number < frame:
            captured, length = struct.unpack(f"{order}II", self._whole(offset, size)[8:16])
            if minor < 3 or (minor == 3 and captured > length):  # exchanged, as in analyzer/core/format/pcap_read.c
                captured = length
            number += 1
            yield number, header + self._whole(offset, size + captured) if number == frame else b""
            offset += size + captured

    def _section(self, offset: int) -> tuple[str, bytes]:
        """Returns byte order and header blocks of the section at an offset: those before it in the file."""
        before = [place for place in self._headers if place[1] <= offset]
        begin = max(i for i, place in enumerate(before) if place[3])
        blocks = [self._whole(at, size) for _, at, size, _ in before[begin:]]
        magic = struct.unpack("<I", blocks[0][8:12])[0]
        return "<" if magic == BYTE_ORDER_MAGIC else ">", b"".join(blocks)

    def _is_process(self, offset: int, length: int, order: str) -> bool:
        """Returns whether a custom block describes a process, as analyzer/core/format/pcapng_process.c: it is no frame."""
        if length < 28:
            return False
        head = self._whole(offset, 20)
        (pen,), (kind, size) = struct.unpack(f"{order}I", head[8:12]), struct.unpack("<II", head[12:20])
        return (pen, kind) == (PEN_WIRESHARK, ENTRY_PROCESS) and 4 <= size <= length - 24

    def _pcapng_frames(self, frame: int) -> Iterator[tuple[int, bytes]]:
        """Yields the frames of a pcapng file from the checkpoint on, each as a file with its section's header blocks."""
        number, offset = self._start(frame)
        order, _ = self._section(offset)
        while number < frame:
            head = self._whole(offset, 12)
            kind = struct.unpack(f"{order}I", head[:4])[0]
            if kind == SECTION:
                order = "<" if struct.unpack("<I", head[8:12])[0] == BYTE_ORDER_MAGIC else ">"
            length = struct.unpack(f"{order}I", head[4:8])[0]
            if length < 12:
                raise InputError(f"{self._name}: at byte {offset}: pcapng block length {length} is less than 12")
            if kind in FRAME_BLOCKS or (kind in CUSTOM_BLOCKS and not self._is_process(offset, length, order)):
                number += 1
                yield number, self._section(offset)[1] + self._whole(offset, length) if number == frame else b""
            offset += length
