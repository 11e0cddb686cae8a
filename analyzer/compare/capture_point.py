# SPDX-License-Identifier: Apache-2.0
"""Loads the packets of one capture point into DuckDB, and the statistics of its files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wiretale.analyzer import _core
from wiretale.analyzer.capture_paths import expand_paths
from wiretale.analyzer.errors import InputError
from wiretale.analyzer.options import NO_OPTIONS, ROWS_MAX, ReadingMode
from wiretale.analyzer.table import InParts, Table
from wiretale.analyzer.trace import core_errors, packets_in_parts

if TYPE_CHECKING:
    import duckdb

    from wiretale.analyzer.compare.rows import CaptureInterface
    from wiretale.analyzer.rows import InterfaceRow

ROLES: dict[int, tuple[str, ...]] = {
    1: ("tracer",),
    2: ("sender", "receiver"),
    3: ("sender", "tracer", "receiver"),
}

# An address by its bytes, in an order that is the same in each capture.
BYTES = """
CREATE OR REPLACE MACRO bytes_of(address) AS [lpad(part, 4, '0') FOR part IN string_split_regex(replace(address, '::',
    ':' || repeat('0:', 8 - len([part FOR part IN string_split(address, ':') IF part != '']))), '[:.]') IF part != '']
"""
# A conversation is all flows between two ends in one encapsulation, because ports that are used again begin another flow.
# `fields` begins with its side 0, the lower end.
ENDS = """
CREATE TABLE ends{point} AS
WITH named AS (SELECT flow, protocol_number AS protocol, [source, coalesce(source_port, 0)::VARCHAR] AS sender,
        [destination, coalesce(destination_port, 0)::VARCHAR] AS receiver, coalesce(path, '') AS path,
        (bytes_of(source), source_port) > (bytes_of(destination), destination_port) AS turned FROM flows),
    listed AS (SELECT flow, coalesce(turned, false) AS turned, protocol, [protocol::VARCHAR]
        || CASE WHEN turned THEN receiver || sender ELSE sender || receiver END || [path] AS fields FROM named)
SELECT *, dense_rank() OVER (ORDER BY fields) AS conversation FROM listed
"""
# A fragmented datagram is one packet with the headers of its first fragment. It is whole once its last byte arrived,
# because RFC 7679 section 3.4 counts it as lost unless reassembled. Without first fragment the flow is unknown: left out.
# A datagram of several blocks is several packets.
READ = """
(SELECT raw.packet, raw.frame, raw.capture::UINTEGER AS interface, conversation,
        ((raw.direction = 1) != turned)::UTINYINT AS side, protocol::UTINYINT AS protocol,
        CASE WHEN raw.datagram_frame IS NULL THEN raw.time_ns ELSE coalesce(complete_ns, last_ns) END AS time_ns,
        raw.datagram_frame IS NULL OR state = 'complete' AS whole,
        coalesce(datagrams.payload_bytes, raw.payload_bytes)::UINTEGER AS payload, ip_id::USMALLINT AS ip_id,
        ttl::UTINYINT AS ttl, captured_bytes::UINTEGER AS captured, digest, digest_short,
        coalesce(tcp_sequence, 0)::UINTEGER AS sequence, tcp_acknowledgment::UINTEGER AS acknowledgment, timestamp AS stamp,
        flags::USMALLINT AS flags, mss::USMALLINT AS mss, run, stream::USMALLINT AS stream, block AS number, blocks, block_bytes
    FROM raw JOIN ends{point} USING (flow) LEFT JOIN datagrams
        ON datagrams.capture = raw.datagram_capture AND datagrams.first_frame = raw.datagram_frame
    WHERE packet IS NOT NULL AND raw.payload_bytes IS NOT NULL AND {chosen})
"""
LOADED = f"""
CREATE TABLE loaded{{point}} AS
SELECT * EXCLUDE (blocks, block_bytes), 0::USMALLINT AS part FROM {READ.replace("{chosen}", "coalesce(blocks, 1) = 1")}
"""
SEVERAL = f"""
INSERT INTO loaded{{point}} BY NAME
SELECT * EXCLUDE (blocks, block_bytes) REPLACE (number + part AS number,
    least(payload - part * block_bytes, block_bytes)::UINTEGER AS payload)
FROM (SELECT *, unnest(range(blocks)) AS part FROM {READ.replace("{chosen}", "blocks > 1")})
"""
COLUMNS = (
    "packet, flow, direction, capture, frame, time_ns, payload_bytes, datagram_capture, datagram_frame, ttl, ip_id, "
    "captured_bytes, digest, digest_short, tcp_sequence, tcp_acknowledgment, timestamp, flags, mss, run, stream, block, "
    "blocks, block_bytes"
)


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
    #: greatest error of the clock of its time stamps, as the tracer recorded it; None if it is not known
    clock_error_ns: int | None = None

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


def interfaces_of(table: Table[InterfaceRow]) -> list[CaptureInterface]:
    """Returns the interfaces with the counts of their statistics."""
    return [
        {
            "file": row["file"],
            "index": row["interface"],
            "name": row["name"],
            "snaplen": row["snaplen"],
            "received": row["received"],
            "dropped_kernel": row["dropped_kernel"],
            "dropped_interface": row["dropped_interface"],
            "dropped_program": row["dropped_program"],
        }
        for row in table
    ]


def clock_error_of(table: Table[InterfaceRow]) -> int | None:
    """Returns the greatest error of the clock that stamped the packets, as the tracer recorded it; None if it is not known of all
    interfaces. The error of the host's clock says nothing about time stamps of an adapter, or about a clock that was set."""
    errors = [
        row["clock_error_ns"] if row["time_stamps"] == "host" and not row["clock_steps"] else None
        for row in table
        if row["packets"]
    ]
    stated = [error for error in errors if error is not None]
    return max(stated) if stated and len(stated) == len(errors) else None


def load_point(connection: duckdb.DuckDBPyConnection, number: int, role: str, files: Sequence[str]) -> CapturePoint:
    """Reads the files of a point into the tables loaded{number} and ends{number}."""
    with core_errors():
        mode = ReadingMode(packets="identified", packet_rows_most=ROWS_MAX)
        core = _core.Analysis(list(files), list(files), NO_OPTIONS, mode)
    empty = Table(core.take_packets())
    connection.register("parts", InParts(lambda: map(Table, packets_in_parts(core)), False, empty))
    connection.execute(f"CREATE TABLE raw AS SELECT {COLUMNS} FROM parts")
    connection.unregister("parts")
    for name in ("flows", "datagrams"):
        connection.register(name, Table(core.table(name)).with_integers())
    for statement in (BYTES, ENDS, LOADED, SEVERAL):
        connection.execute(statement.format(point=number))
    for name in ("flows", "datagrams"):
        connection.unregister(name)
    read = "FILTER (payload_bytes IS NOT NULL)"
    span = f"SELECT count(*), count(*) {read}, min(time_ns) {read}, max(time_ns) {read} FROM raw"
    ((ip_packets, packets_read, first_ns, last_ns),) = connection.execute(span).fetchall()
    connection.execute("DROP TABLE raw")
    interfaces: Table[InterfaceRow] = Table(core.table("interfaces"))
    damage = dict.fromkeys((row["file"], row["damage"]) for row in interfaces if row["damage"] is not None)
    packets = core.totals()["packets"]
    return CapturePoint(
        number,
        role,
        list(files),
        interfaces_of(interfaces),
        [text for _, text in damage],
        packets,
        packets - ip_packets,
        ip_packets - packets_read,
        first_ns,
        last_ns,
        clock_error_of(interfaces),
    )
