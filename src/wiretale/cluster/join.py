# SPDX-License-Identifier: Apache-2.0
"""The tables of all shards and captures as those of one run: one SQL statement for each table (docs/cluster.md).

Flows are numbered by their first packets in the order in which one run merges the files: by the latest time of the file so far,
then by file and frame. That time is the packet's own, except in the spans of a capture (CutFacts.spans). Fragments without
the first one, which has the ports, are a flow when their datagram ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wiretale.analyzer import _core
from wiretale.analyzer.capture_paths import is_url
from wiretale.analyzer.errors import InputError
from wiretale.analyzer.printable import utf8_name
from wiretale.analyzer.table import OF_FLOWS
from wiretale.analyzer.trace import Trace, add_findings, core_errors, warn_of_damage
from wiretale.analyzer.trace import stamp_of as stamp_on_disk
from wiretale.cluster.job import Job
from wiretale.cluster.place import Place
from wiretale.cluster.shards import CutFacts, Shard, ShardFacts, fetched, file_folder, shard_folder

if TYPE_CHECKING:
    import duckdb

NAMED_PORTS = 2  # rows of second_ports for each interface (analyzer/core/update/capture_ports.h)
COLUMNS = {name: [(column, kind) for column, kind, *_ in columns] for name, _, columns in _core.schemas()}
NUMBERS = """
CREATE TABLE numbers AS
WITH began AS (
    SELECT shard_flows.origin, shard_flows.flow, {
        late: coalesce(late, false), time: coalesce(begin_ns, first_ns), frame: coalesce(begin_frame, first_frame)
    } AS packet, first_capture
    FROM shard_flows LEFT JOIN begins ON shard_flows.origin = of_shard AND shard_flows.flow = of_flow
)
SELECT origin AS shard, flow AS own, row_number() OVER (
    ORDER BY packet.late, coalesce(span_ns, packet.time), file, packet.frame, origin, flow
) - 1 AS flow_number
FROM began JOIN files ON first_capture = capture
LEFT JOIN spans ON of_file = file AND packet.frame BETWEEN first_of_span AND last_of_span
"""
OF_FILES = """
SELECT {columns} FROM (
    SELECT * REPLACE (rows.capture + first_interface AS capture) FROM file_{table} AS rows JOIN captures USING (origin)
)
ORDER BY origin, file_row_number
"""
OF_SHARDS = """
SELECT {columns} FROM (
    SELECT rows.* REPLACE (flow_number AS flow) FROM shard_{table} AS rows LEFT JOIN numbers ON shard = origin AND own = rows.flow
)
ORDER BY flow, origin, file_row_number
"""
# Exchanges of the local network belong to no flow: they are of a capture.
EXCHANGES = """
SELECT {columns} FROM (
    SELECT rows.* REPLACE (flow_number AS flow)
    FROM shard_exchanges AS rows LEFT JOIN numbers ON shard = origin AND own = rows.flow
    UNION ALL BY NAME
    SELECT rows.* REPLACE (rows.capture + first_interface AS capture) FROM file_exchanges AS rows JOIN captures USING (origin)
)
ORDER BY flow, origin, file_row_number
"""
INTERFACES = """
SELECT {columns} FROM (
    SELECT rows.* REPLACE (
        rows.capture + first_interface AS capture, sums.mirrored AS mirror_duplicates,
        sums.second AS second_port_duplicates, sums.longest AS second_port_ns_max
    ) FROM file_interfaces AS rows JOIN captures USING (origin) JOIN (
        SELECT capture, sum(mirror_duplicates)::BIGINT AS mirrored, sum(second_port_duplicates)::BIGINT AS second,
            max(second_port_ns_max) AS longest
        FROM shard_interfaces GROUP BY capture
    ) AS sums ON sums.capture = rows.capture + first_interface
)
ORDER BY origin, file_row_number
"""
# In a shard, `rank` is the number of both ports. A port that some shards name and others do not is several, and has no name.
PORT = """
CASE WHEN count({side}_capture) = count(*) AND count(DISTINCT ({side}_capture, {side}_source, {side}_destination)) = 1
    THEN any_value({side}_{{0}}) END AS {side}_{{0}}
"""
NAMES = ("capture", "source", "destination")
SECOND_PORTS = f"""
SELECT {{columns}} FROM (
    SELECT capture, sum(packets)::BIGINT AS packets,
        {", ".join(PORT.format(side=side).format(name) for side in ("first", "second") for name in NAMES)},
        min(first_ttl_min) AS first_ttl_min, max(first_ttl_max) AS first_ttl_max,
        min(second_ttl_min) AS second_ttl_min, max(second_ttl_max) AS second_ttl_max,
        row_number() OVER (PARTITION BY capture ORDER BY sum(packets) DESC, rank) AS rank
    FROM shard_second_ports GROUP BY capture, rank
)
WHERE rank <= {NAMED_PORTS} ORDER BY capture, rank
"""
STATEMENTS = {
    "interfaces": INTERFACES,
    "second_ports": SECOND_PORTS,
    **dict.fromkeys(("decode_stops", "neighbors", "announcers", "groups"), OF_FILES),
    **dict.fromkeys(OF_FLOWS, OF_SHARDS),
    "exchanges": EXCHANGES,
}
SQL_TYPES = {
    "bool": "BOOLEAN",
    "real": "DOUBLE",
    "word": "VARCHAR",
    "text": "VARCHAR",
    "path": "VARCHAR",
    "address": "VARCHAR",
}


def table_view(connection: duckdb.DuckDBPyConnection, name: str, table: str, paths: Mapping[str, int]) -> None:
    """Makes a view of a table over some files, with the number of each as `origin`."""
    types = [(column, SQL_TYPES.get(kind, "BIGINT")) for column, kind in COLUMNS[table]]
    connection.execute(f"CREATE TABLE paths_of_{name} (listed VARCHAR, origin BIGINT)")
    if not paths:
        columns = ", ".join(f'NULL::{kind} AS "{column}"' for column, kind in types)
        connection.execute(f"CREATE VIEW {name} AS SELECT {columns}, 0 AS origin, 0 AS file_row_number LIMIT 0")
        return
    connection.executemany(f"INSERT INTO paths_of_{name} VALUES (?, ?)", list(paths.items()))
    columns = ", ".join(f'"{column}"::{kind} AS "{column}"' for column, kind in types)
    listed = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
    connection.execute(
        f"CREATE VIEW {name} AS SELECT {columns}, origin, file_row_number FROM "
        f"read_parquet([{listed}], filename = true, file_row_number = true) JOIN paths_of_{name} ON filename = listed"
    )


def number_captures(connection: duckdb.DuckDBPyConnection, cuts: Mapping[int, CutFacts], files: Sequence[int]) -> None:
    """Makes the tables of the numbers of interfaces and of the spans, by the number of the capture."""
    connection.execute("CREATE TABLE captures (origin BIGINT, first_interface BIGINT)")
    connection.execute("CREATE TABLE files (capture BIGINT, file BIGINT)")
    connection.execute("CREATE TABLE spans (of_file BIGINT, first_of_span BIGINT, last_of_span BIGINT, span_ns BIGINT)")
    first = 0
    for file in files:
        facts = cuts[file]
        connection.execute("INSERT INTO captures VALUES (?, ?)", (file, first))
        connection.execute(
            "INSERT INTO files SELECT range, ? FROM range(?, ?)", (file, first, first + facts.interfaces)
        )
        if facts.spans:
            connection.executemany("INSERT INTO spans VALUES (?, ?, ?, ?)", [(file, *span) for span in facts.spans])
        first += facts.interfaces


def list_begins(connection: duckdb.DuckDBPyConnection, shards: Sequence[Shard], sums: Sequence[ShardFacts]) -> None:
    """Makes the table of the packets that began flows, if the table of flows has another one."""
    connection.execute(
        "CREATE TABLE begins (of_shard BIGINT, of_flow BIGINT, begin_ns BIGINT, begin_frame BIGINT, late BOOLEAN)"
    )
    begins = [(shard.number, *begin) for shard, facts in zip(shards, sums, strict=True) for begin in facts.begins]
    if begins:
        connection.executemany("INSERT INTO begins VALUES (?, ?, ?, ?, ?)", begins)


def joined_core(
    folder: Path, shards: Sequence[Shard], cuts: Mapping[int, CutFacts], sums: Sequence[ShardFacts]
) -> _core.Analysis:
    """Returns an analysis with the tables of all shards. InputError if a file is damaged."""
    import duckdb

    files = shards[0].files
    excluded = [times for file in files if (times := cuts[file].excluded)]
    spent = (sum(times[0] for times in excluded), *bounds(excluded))
    with duckdb.connect(config={"preserve_insertion_order": True}) as connection, utf8_name(folder) as named:
        try:
            for table in STATEMENTS:
                of_files = {file_folder(file): file for file in files if table in cuts[file].tables}
                of_shards = {
                    shard_folder(shard.number): shard.number
                    for shard, facts in zip(shards, sums, strict=True)
                    if table in facts.tables
                }
                for kind, places in (("file", of_files), ("shard", of_shards)):
                    paths = {str(named / below / f"{table}.parquet"): place for below, place in places.items()}
                    table_view(connection, f"{kind}_{table}", table, paths)
            number_captures(connection, cuts, files)
            list_begins(connection, shards, sums)
            connection.execute(NUMBERS)
            with core_errors():
                return _core.Analysis.joined(
                    table_streams(connection),
                    totals_of([cuts[file] for file in files], sums),
                    [tuple(judged) for facts in sums for judged in facts.judged],
                    spent,
                )
        except duckdb.Error as error:
            raise InputError(f"{folder}: damaged: {str(error).splitlines()[0]}: remove it, and begin again") from None


def table_streams(connection: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, object]]:
    """Yields each table as an Arrow stream, one after the other, because a result is in memory."""
    for table, statement in STATEMENTS.items():
        columns = ", ".join(f'"{column}"' for column, _ in COLUMNS[table])
        yield table, connection.sql(statement.format(table=table, columns=columns)).__arrow_c_stream__()


def totals_of(cuts: Sequence[CutFacts], sums: Sequence[ShardFacts]) -> dict[str, int]:
    """Returns the totals of all captures and shards. Packets are those of the captures: an ICMP error may be in two shards."""
    totals = Counter[str]()
    for counts in (*(facts.totals for facts in cuts), *(facts.totals for facts in sums)):
        totals.update(counts)
    return {**totals, "packets": sum(facts.totals["packets"] for facts in cuts)}


def bounds(excluded: Sequence[Sequence[int]]) -> tuple[int, int]:
    """Returns the first and the last time of packets that --start and --end exclude."""
    return min((times[1] for times in excluded), default=0), max((times[2] for times in excluded), default=0)


def join(job: Job, shards: Sequence[Shard], cuts: Mapping[int, CutFacts], sums: Sequence[ShardFacts]) -> Trace:
    """Returns the result of all shards, with relations, findings and causes."""
    files = shards[0].files
    place = Place(job.work)
    folders = [*map(file_folder, files), *(shard_folder(shard.number) for shard in shards)]
    with ExitStack() as stack:
        names: list[Any] = []
        if place.is_url:
            names = [name for name in place.names() if name.endswith(".parquet") and name.partition("/")[0] in folders]
        core = joined_core(fetched(stack, place, names), shards, cuts, sums)
    captures = [job.files[file] for file in files]
    stamps = {capture.name: None if is_url(capture.path) else stamp_on_disk(capture.path) for capture in captures}
    trace = Trace(core, stamps, job.options)
    trace._joined = True
    warn_of_damage(text for text in trace.interfaces.column("damage") if text is not None)
    add_findings(trace)
    return trace
