# SPDX-License-Identifier: Apache-2.0
"""The native core (analyzer/core/python/module.c)."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from wiretale.analyzer.options import AnalysisOptions, ReadingMode

#: of the declarations that it was compiled from (analyzer/core_stamp.py)
STAMP: str

def vocabulary() -> list[str]:
    """Every word that a table can hold, by the number that packed() gives it."""

def foreign_format(first: bytes, /) -> tuple[str, str] | None:
    """Name of a file that this reader does not read, by its first bytes, and the command that converts it (%s: the file)."""

class Error(Exception):
    """args: (kind, text); kind is "usage", "unreadable" or "memory"."""

class Table:
    """A finished table; it keeps its Analysis alive."""

    @property
    def name(self) -> str: ...
    @property
    def meaning(self) -> str: ...
    def __len__(self) -> int: ...
    def columns(self) -> list[tuple[str, str, str, str, bool]]: ...
    def column(self, name: str, /) -> list[Any]: ...
    def rows(self, start: int = 0, stop: int | None = None) -> list[dict[str, Any]]: ...
    def rows_at(self, numbers: list[int], /) -> list[dict[str, Any]]: ...
    def held_columns(self) -> list[str]: ...
    def nonzero(self, names: list[str], /) -> dict[str, list[tuple[int, Any]]]: ...
    def rows_by_flow(self, flow_count: int, /) -> bytes: ...
    def total(self, name: str, /) -> int: ...
    def rows_where(self, name: str, word_or_least: str | int | None = None, /) -> list[int]: ...
    def packed(
        self, fields: list[tuple[str, str, int, int, bool]], flows: list[int] | None = None, /
    ) -> list[bytes]: ...
    def time_sums(self, start: str, width: str, names: list[str], base_ns: int, bin_ns: int, bins: int, /) -> bytes: ...
    def flow_sums(
        self, names: list[str], base_ns: int, bin_ns: int, bins: int, most: int, /
    ) -> tuple[bytes, bytes, bytes] | None: ...
    def of_flows(self, flows: list[int], most: int, /) -> Table: ...
    def packet_streams(
        self, flows: list[int], base_ns: int, flights: bool = False, /
    ) -> tuple[int, dict[str, bytes]]: ...
    def json(self, columns: Sequence[str] | None = None, lines: bool = False, /) -> Iterator[bytes]: ...
    def __arrow_c_stream__(
        self, requested_schema: object = None, integers: bool = False, times: bool = False
    ) -> object: ...
    def following_stream(self, next: Callable[[], Table | None], times: bool, /) -> object: ...
    def joined_stream(self, tables: list[Table], times: bool, /) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

class Analysis:
    """One pass over capture files; the tables are complete after finish()."""

    def __new__(
        cls,
        paths: list[str],
        names: list[str],
        options: AnalysisOptions,
        mode: ReadingMode,
        /,
    ) -> Analysis: ...
    @classmethod
    def split(
        cls,
        path: str,
        name: str,
        file: int,
        fds: list[int],
        head: bytes,
        key: bytes,
        options: AnalysisOptions,
        /,
    ) -> tuple[Analysis, dict[str, Any]]:
        """Writes a capture to shards; returns the rows that it has as a whole, and its facts (analyzer/core/shard/split.h).
        OSError if a shard cannot be written."""
    def begins(self) -> list[tuple[int, int | None, int, bool]]:
        """Flows of a shard whose first packet the table does not tell: flow, time, frame, whether it came between packets."""
    @classmethod
    def joined(
        cls,
        tables: Iterator[tuple[str, object]],
        totals: dict[str, int],
        judged: list[tuple[str, str, int, int]],
        excluded: tuple[int, int, int],
        /,
    ) -> Analysis:
        """A finished analysis with the rows of Arrow streams (analyzer/core/shard/join.h); flows come first."""
    def progress(self) -> tuple[int, int, int]: ...
    def step(self, most: int, /) -> bool: ...
    def finish(self) -> None: ...
    def follow(self, paths: list[str], names: list[str], /) -> None: ...
    def take(self) -> Analysis: ...
    def open_flows(self) -> bytes: ...
    def keep_flows(self, flows: bytes, /) -> None: ...
    def table(self, name: str, /) -> Table: ...
    def take_packets(self) -> Table: ...
    def totals(self) -> dict[str, int]: ...
    def judged(self) -> list[tuple[str, str, int, int]]: ...
    def excluded(self) -> tuple[int, int, int] | None: ...
    def nest_exchanges(self) -> None: ...
    def add_row(self, table: str, row: tuple[Any, ...], /) -> None: ...

def frames(
    paths: list[str], frames: list[int], room: int, /
) -> list[tuple[tuple[str, int | None, bool, bool], tuple[int, int | None, int, bytes] | None] | None]:
    """For frames of a file in rising order: reason, IP protocol, and whether a transport header and a fragment were found; then
    link type, time in ns (None if it is not known), bytes on the wire and captured bytes, or None if they do not fit into the
    bytes that `room` leaves for all frames. None if the file has no such frame."""

def cut(
    paths: list[str],
    *,
    fd: int,
    head: bytes,
    files: bytes,
    groups: list[tuple[bytes, bytes, int, int]],
    ranges: bytes,
    all: bool,
    start_ns: int,
    end_ns: int,
    around_ns: int,
    headers: bool,
    classic: bool,
    key: bytes | None,
    comments: tuple[bytes, list[bytes]],
) -> tuple[int, int, list[str], int, int, bool, bool]:
    """Copies chosen packets to a descriptor as pcapng and returns packets read, packets written, texts of damage, blocks of
    decryption secrets and of processes in the input, and whether the output has each of them.

    `classic` writes pcap, without `head` and `comments`; else `head` is written first. `files` has the file of each interface
    (u32). `groups` are frames: interfaces (u32), frames (double), first and last frame that count. `ranges` has file, first and
    last frame (u64), sorted and disjoint. `key` anonymizes. `comments` are file and frame (u64) of each packet, sorted, and the
    texts.
    """

def pseudonym(address: bytes, key: bytes, /) -> bytes: ...
def frame_index(path: str, every: int, /) -> tuple[str | None, int, bytes, bytes]:
    """Compression, number of frames, checkpoints (frames before, offset) and header blocks of pcapng (frames before, offset,
    size, whether it is a section header), as native uint64; offsets are in the decompressed file."""

def seek_points(path: str, store: int, spacing: int, most: int, /) -> bytes:
    """The points of a compressed file, as six native uint64 each, beginning with the offset in the decompressed file; b"" of
    a file that is not compressed. They are `spacing` bytes apart, or twice that if they would be `most`. Appends to the
    descriptor `store` (analyzer/core/input/seek_points.h)."""

def seek_read(path: str, points: bytes, store: int, offset: int, size: int, /) -> bytes:
    """At most 16 MiB of the decompressed file from an offset; fewer bytes at its end or at damage."""

def packet_rows(rows: list[tuple[int | None, ...]], /) -> Table:
    """A packets table with these rows, each with all columns in order."""

def time_columns(
    parts: Iterator[Table], flows: list[tuple[int, int, int, int, int, int]], chosen: list[int], most: int, /
) -> tuple[Table, dict[str, bytes]]:
    """The first `most` packets of the chosen flows, and flows by columns of time (analyzer/core/export/export.h), each as flow,
    begin and width in ns, columns, main direction, and what is drawn (0 TCP, 1 payload, 2 packets)."""

def schemas() -> list[tuple[str, str, list[tuple[str, str, str, str, bool]]]]: ...
def libraries() -> dict[str, str]: ...
def give_back_memory() -> None:
    """Returns freed memory to the kernel."""
