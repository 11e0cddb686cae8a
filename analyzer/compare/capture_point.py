# SPDX-License-Identifier: Apache-2.0
"""Loads the packets of one capture point into DuckDB, with fragments reassembled, and the statistics of its files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wiretale.analyzer import _core
from wiretale.analyzer.capture_paths import expand_paths
from wiretale.analyzer.errors import InputError
from wiretale.analyzer.options import NO_OPTIONS, ReadingMode
from wiretale.analyzer.trace import core_errors

if TYPE_CHECKING:
    import duckdb

    from wiretale.analyzer.compare.rows import CaptureInterface

ROLES: dict[int, tuple[str, ...]] = {
    1: ("tracer",),
    2: ("sender", "receiver"),
    3: ("sender", "tracer", "receiver"),
}

# A fragmented datagram is one packet with the headers of its first fragment. It is whole once its last byte arrived,
# because RFC 7679 section 3.4 counts it as lost unless reassembled. Without first fragment the flow is unknown: left out.
WHOLE_PACKETS = """
CREATE TABLE loaded{point} AS
SELECT packet, frame, time_ns, conversation, digest, digest_short, run, number, interface, sequence, acknowledgment,
    payload, ip_id, stamp, flags, mss, stream, part, side, protocol, ttl, digested, ends, true AS whole, 1::UINTEGER AS pieces
FROM raw{point} WHERE datagram IS NULL
UNION ALL
SELECT gathered.packet, frame, gathered.time_ns, conversation, digest, digest_short, run, number, interface, sequence,
    acknowledgment, CASE WHEN protocol = 17 THEN payload ELSE gathered.bytes - (fragment_end - payload) END,
    ip_id, stamp, flags, mss, stream, part, side, protocol, ttl, digested, ends, gathered.whole, gathered.pieces
FROM (SELECT datagram, min(packet) AS packet, min(packet) FILTER (fragment_start = 0) AS first_packet,
        coalesce(max(time_ns) FILTER (completes = 1), max(time_ns)) AS time_ns, max(fragment_end) AS bytes,
        max(completes) = 1 AS whole, count(*) AS pieces
    FROM raw{point} WHERE datagram IS NOT NULL GROUP BY datagram) AS gathered
JOIN raw{point} AS first ON first.packet = gathered.first_packet
"""


@dataclass
class CapturePoint:
    """The capture at sender, tracer or receiver.

    >>> import wiretale
    >>> comparison = wiretale.compare("sender.pcap", "receiver.pcap")
    >>> [(point.role, point.packets, point.dropped) for point in comparison.points]
    [('sender', 342, None), ('receiver', 341, None)]
    """

    number: int
    role: str
    files: list[str]
    interfaces: list[CaptureInterface]
    damage: list[str]
    packets: int
    not_ip: int
    unread: int
    first_ns: int | None = None
    last_ns: int | None = None

    @property
    def dropped(self) -> int | None:
        """Drop count in the statistics of its files; None without any."""
        counts = [
            count
            for row in self.interfaces
            for count in (row["dropped_kernel"], row["dropped_interface"], row["dropped_program"])
            if count is not None
        ]
        return sum(counts) if counts else None

    @property
    def name(self) -> str:
        """The names of the first files."""
        return ", ".join(Path(file).name for file in self.files[:2]) + (", …" if len(self.files) > 2 else "")


def find_files(path: str) -> list[str]:
    """Returns the files of one capture point. Raises InputError if one of them is no readable capture."""
    files = expand_paths([path], local=True)
    if "-" in files:
        raise InputError("-: expected a file or a folder, because standard input can be read only once")
    with core_errors():
        _core.Analysis(files, files, NO_OPTIONS, ReadingMode(interfaces_only=True))
    return files


def load_point(connection: duckdb.DuckDBPyConnection, number: int, role: str, files: Sequence[str]) -> CapturePoint:
    """Reads the files of a point into the table loaded{number}."""
    observations = _core.Observations(list(files))
    connection.register("observations", observations)
    connection.execute(f"CREATE TABLE raw{number} AS FROM observations")
    connection.unregister("observations")
    connection.execute(WHOLE_PACKETS.format(point=number))
    counts = observations.counts()
    point = CapturePoint(
        number,
        role,
        list(files),
        observations.interfaces(),
        observations.damage(),
        counts["packets"],
        counts["not_ip"],
        counts["unread"] + counts["unassigned"],
    )
    span = connection.execute(f"SELECT min(time_ns), max(time_ns) FROM raw{number}").fetchone()
    point.first_ns, point.last_ns = span or (None, None)
    connection.execute(f"DROP TABLE raw{number}")
    return point
