# SPDX-License-Identifier: Apache-2.0
"""Publishes a slot of `wiretale store watch`: the flows that begin in its files, from one analysis of its window (window.py).

A window begins in the middle of flows that earlier slots published. Such a rest of a flow is known by its key and its first
packet, which lies between the first and the last packet of the published flow, if that flow's window had the file. The
core ends a closed connection after 60 s, but may miss the closing in its rest, and then adds later packets to the rest.
These are taken from an analysis that begins after the published flow.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.errors import InputError
from wiretale.analyzer.printable import utf8_name
from wiretale.analyzer.table import AFTER_PASS, OF_FINDINGS, OF_INTERFACES, STORED_TABLES
from wiretale.reports.export.parquet import FINITE_SQL, TIME_SQL, TIMED, copy_to
from wiretale.reports.store.add import capture_row, columns_of, manifest, quoted
from wiretale.reports.store.layout import (
    ADDING,
    MANIFEST,
    MANY,
    MARKER,
    captures,
    columns_in,
    glob_escaped,
    marker,
    place_of,
    publish,
    publishing,
    staging,
    stored,
    write_file,
)
from wiretale.reports.store.window import Pending, Plan

if TYPE_CHECKING:
    import duckdb

    from wiretale.analyzer.findings.model import Finding
    from wiretale.analyzer.findings.registry import Ranked
    from wiretale.analyzer.options import AnalysisOptions
    from wiretale.analyzer.trace import Trace

# Rows in the order of flows, so that those of the slot are the first ones.
IN_ORDER = ("flows", "directions", "series", "waits", "endings", "loops", "handshakes")
# Rows are joined with the few chosen flows, of which the hash table must be made; DuckDB does not have the sizes of the tables.
SETTINGS = """SET disabled_optimizers = 'join_order,build_side_probe_side'; SET enable_progress_bar = false;
SET threads = 1"""
RESTS_MOST = 16  # analyses for packets behind the rest of a flow
REASSEMBLY_NS = 30_000_000_000
# Protocols that have ports; without them, a flow consists of fragments whose first one was before the window.
WITH_PORTS = "protocol_number IN (6, 17, 33, 132, 136)"
HOSTS = """protocol_number || ' ' || least(source, destination) || ' ' || greatest(source, destination)
    || ' ' || coalesce(path, '')"""
FROM_END, TO_END = (f"{end} || ' ' || coalesce({end}_port, -1)" for end in ("source", "destination"))
KEY = f"""protocol_number || ' ' || least({FROM_END}, {TO_END}) || ' ' || greatest({FROM_END}, {TO_END})
    || ' ' || coalesce(path, '')"""
#: columns with the number of an interface
CAPTURES = ("capture", "first_capture", "second_capture", "before_capture", "after_capture", "pause_capture")
CUT = "active_timeout"
# A closed connection is over, although its rest of packets may come for so long: the core waits for them (flow_end.c).
CLOSED, CLOSED_NS = "state IN ('closed', 'reset', 'refused')", 60_000_000_000
WITH_INTEGERS = ("interfaces", *AFTER_PASS)  # the row of `captures` is made of them, or they come from Python


class Earlier(NamedTuple):
    """A capture in the store that watch published."""

    folder: Path
    digest: str
    name: str
    slot: list[str]
    window: list[str]
    complete: bool
    until_ns: int | None  # the end of the window; None if it is unknown


def texts_of(value: object) -> list[str]:
    """Returns a list of texts. Raises TypeError if it is none."""
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise TypeError("expected texts")
    return value


def earlier_in(store: Path, days: Container[str | None]) -> Iterator[Earlier]:
    """Yields the captures of these days that watch published, also those that `store compact` has put together."""
    for capture in captures(store):
        if capture.day in days:
            with suppress(OSError, ValueError, KeyError, TypeError):  # `store check` names what is damaged
                manifest = capture.manifest()
                for digest, member in {capture.digest: manifest, **manifest.get("members", {})}.items():
                    if seen := member.get("watch"):
                        slot, window = texts_of(seen["slot"]), texts_of(seen["window"])
                        name, until_ns = str(seen["name"]), seen.get("until_ns")
                        yield Earlier(capture.folder, digest, name, slot, window, bool(seen["complete"]), until_ns)


class Fact(NamedTuple):
    """A file without tables in the store: it is no capture, or was removed too early."""

    path: Path
    size: int | None
    digest: str
    day: str | None
    text: str


class Published(NamedTuple):
    """A file whose flows are in the store now."""

    file: Pending
    flows: int
    earlier: Earlier


def reaching(slot: Sequence[Pending], earlier: Sequence[Earlier]) -> list[tuple[str, int, int | None]]:
    """Returns the captures whose windows reach into files of a slot, with the place of each file, and the windows' ends."""
    numbers = {file.digest: number for number, file in enumerate(slot)}
    return [
        (capture.digest, numbers[digest], capture.until_ns)
        for capture in earlier
        for digest in capture.window
        if digest in numbers
    ]


class Slot:
    """The tables of a slot in the making, as `slot_flows` and so on in the connection, with the number of the file."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, plan: Plan, options: AnalysisOptions, cut: bool) -> None:
        self.connection = connection
        self.plan = plan
        self.options = options
        self.cut = cut
        self.times: dict[str, list[str]] = {}
        self.interfaces: dict[int, list[str]] = {}  # digests of the files of interface numbers, by file
        self.caps: dict[int, list[int]] = {}  # the number of each interface of the window in the rows of a file
        self.findings: dict[int, list[Finding]] = {}  # by file

    def set_files(self, trace: Trace) -> None:
        """Makes `places`: file of each interface, and `files`: for each file, the numbers that interfaces have in its rows."""
        place = {str(window_file.path): number for number, window_file in enumerate(self.plan.window)}
        rows = sorted((row["capture"], place[row["file"]]) for row in trace.interfaces.rows())
        self.execute("CREATE OR REPLACE TEMP TABLE places (capture INTEGER, fileno INTEGER)")
        self.execute("CREATE OR REPLACE TEMP TABLE files (fileno INTEGER, caps INTEGER[])")
        self.connection.executemany("INSERT INTO places VALUES (?, ?)", [list(row) for row in rows])
        for number in range(len(self.plan.slot)):
            own_first = sorted(rows, key=lambda row: (row[1] != number, row[0]))
            numbers = {capture: new for new, (capture, _) in enumerate(own_first)}
            self.interfaces[number] = [self.plan.window[file].digest for _, file in own_first]
            self.caps[number] = [numbers[capture] for capture, _ in rows]
            self.execute("INSERT INTO files VALUES (?, ?)", [number, self.caps[number]])

    def execute(self, sql: str, values: Sequence[object] | None = None) -> duckdb.DuckDBPyConnection:
        """Runs a statement."""
        return self.connection.execute(sql, values)

    def set_before(self, earlier: Sequence[Earlier]) -> None:
        """Makes `before`: the published flows that may reach into each file."""
        pairs = reaching(self.plan.slot, earlier)
        used = {digest for digest, _, _ in pairs}
        self.execute(
            "CREATE OR REPLACE TEMP TABLE before (fileno INTEGER, key VARCHAR, hosts VARCHAR, first BIGINT, last BIGINT, "
            "is_over BOOLEAN)"
        )
        self.execute("CREATE OR REPLACE TEMP TABLE pairs (capture_id VARCHAR, fileno INTEGER, until BIGINT)")
        if pairs:
            self.execute(
                "INSERT INTO pairs SELECT unnest(?), unnest(?), unnest(?::BIGINT[])",
                [list(column) for column in zip(*pairs, strict=True)],
            )
        places = sorted({capture.folder for capture in earlier if capture.digest in used})
        for together in (False, True):
            folders = [place for place in places if place.name.startswith(MANY) == together]
            if folders := [place for place in folders if (place / "flows.parquet").exists()]:
                self.add_before(folders, together)

    def add_before(self, places: Sequence[Path], together: bool) -> None:
        """Adds the flows of folders to `before`; if `together`, each has those of several captures."""
        how = "false" if together else "true, hive_types = {'day': DATE, 'capture_id': VARCHAR}"
        with utf8_name(places[0].parent.parent, plain=True) as store:
            files = [glob_escaped(store / place.parent.name / place.name / "flows.parquet") for place in places]
            self.execute(
                f"""INSERT INTO before SELECT fileno, {KEY}, {HOSTS}, epoch_ns(first_ns), epoch_ns(last_ns),
                "end" NOT IN ('end_of_capture', '{CUT}') AND NOT ("end" = 'idle' AND {CLOSED}
                AND epoch_ns(last_ns) + {CLOSED_NS} > coalesce(until, 0)) FROM read_parquet([{", ".join(map(quoted, files))}],
                union_by_name = true, hive_partitioning = {how}) JOIN pairs USING (capture_id) WHERE epoch_ns(last_ns) >= ?""",
                [self.plan.slot[0].first_ns or 0],
            )

    def choose(self, only: tuple[str, int] | None = None) -> None:
        """Makes `own`: the flows that begin in the slot, without rests; or of a key, those after a time."""
        self.execute(f"""CREATE OR REPLACE TEMP TABLE begun AS SELECT flow, fileno, {KEY} AS key, {HOSTS} AS hosts, first_ns,
            last_ns, "end" = 'end_of_capture' AS is_open, {WITH_PORTS} AND source_port IS NULL AS is_headless
            FROM flows JOIN places ON capture = first_capture WHERE fileno < {len(self.plan.slot)}""")
        rest_until = (self.plan.slot[0].first_ns or 0) + REASSEMBLY_NS
        self.execute(f"""CREATE OR REPLACE TEMP TABLE rests AS
            SELECT flow, before.last AS last, is_over AND last_ns > before.last AS goes_on, begun.key AS key
            FROM begun JOIN before ON begun.fileno = before.fileno AND begun.key = before.key
            AND first_ns BETWEEN before.first AND before.last
            UNION ALL SELECT flow, before.last, false, begun.key FROM begun JOIN before
            ON begun.fileno = before.fileno AND begun.hosts = before.hosts AND first_ns BETWEEN before.first AND before.last
            WHERE is_headless AND last_ns <= {rest_until}""")
        condition = "key = ? AND first_ns > ?" if only else "true"
        before = (
            "coalesce((SELECT max(number) + 1 FROM numbered WHERE numbered.fileno = begun.fileno), 0)" if only else "0"
        )
        self.execute(
            f"""CREATE OR REPLACE TEMP TABLE own AS SELECT flow, fileno, is_open, caps,
            {before} + row_number() OVER (PARTITION BY fileno ORDER BY flow) - 1 AS number
            FROM begun JOIN files USING (fileno) WHERE flow NOT IN (SELECT flow FROM rests) AND {condition}""",
            only,
        )
        statement = "INSERT INTO numbered" if only else "CREATE OR REPLACE TEMP TABLE numbered AS"
        self.execute(f"{statement} SELECT fileno, number FROM own")

    def open_flows(self) -> int:
        """Returns the number of chosen flows that may go on."""
        return int(self.execute("SELECT count(*) FROM own WHERE is_open").fetchall()[0][0])

    def going_on(self) -> list[tuple[str, int]]:
        """Returns key and end of the published flows whose rest has later packets, which belong to no published flow."""
        flow_ends = self.execute("SELECT key, max(last) FROM rests WHERE goes_on GROUP BY key ORDER BY ALL").fetchall()
        return [(key, last) for key, last in flow_ends]

    def take(self, trace: Trace, first: bool) -> None:
        """Adds the rows of the chosen flows to the tables of the slot; those without a flow only with the first analysis."""
        (most,) = self.execute("SELECT coalesce(max(flow), -1) + 1 FROM own").fetchall()[0]
        for name in STORED_TABLES:
            table = trace.table(name)
            self.times[name] = [column for column, kind, *_ in table.columns() if kind == "time"]
            count = sum(table._rows_by_flow(most)) if name in IN_ORDER else len(table)
            begin = f"CREATE OR REPLACE TEMP TABLE slot_{name} AS" if first else f"INSERT INTO slot_{name}"
            if first or (name not in OF_INTERFACES and count):
                columns = [column for column, *_ in table.columns()]
                source = name if name in WITH_INTEGERS else TIMED + name
                rows = f"(SELECT row_number() OVER () AS row_place, * FROM (FROM {source} LIMIT {count})) AS rows"
                self.execute(f"{begin} {self.rows_sql(name, columns, rows, first)}")
        self.take_findings(trace)

    def rows_sql(self, name: str, columns: list[str], rows: str, first: bool) -> str:
        """Returns the SQL of the rows of a table that belong to the slot."""
        if name in OF_FINDINGS:  # take_findings() adds them
            return f"SELECT 0::INTEGER AS fileno, rows.* FROM {rows} WHERE false"
        # `own.caps` has the number of each interface of the window for the capture of a row
        changed: dict[str, str] = {column: f"own.caps[{column} + 1]" for column in CAPTURES if column in columns}
        if name in OF_INTERFACES:
            changed = {column: f"files.caps[{column} + 1]" for column in changed}
            return f"""SELECT fileno, rows.* REPLACE ({listed(changed)}) FROM {rows} JOIN places USING (capture)
                JOIN files USING (fileno)"""
        if name == "relations":
            return self.relations_sql(rows)
        changed["flow"] = "own.number"
        if name == "flows":
            cut = f"if({CLOSED}, 'idle', '{CUT}')"
            end = f'if("end" = \'end_of_capture\', {cut}, "end")' if self.cut else '"end"'
            changed["end"] = f"{end}::VARCHAR"
        joined = f"{rows} JOIN own USING (flow)"
        if name == "exchanges":  # the parent may be a flow of another file, whose numbers are others
            changed["within"] = "parents.number"
            joined += " LEFT JOIN own AS parents ON parents.flow = rows.within AND parents.fileno = own.fileno"
        sql = f"SELECT own.fileno, rows.* REPLACE ({listed(changed)}) FROM {joined}"
        if first and name in ("events", "datagrams", "exchanges"):
            changed = {key: value for key, value in changed.items() if key != "within"}
            changed |= {"flow": "NULL", "capture": "files.caps[capture + 1]"}
            sql += f""" UNION ALL SELECT fileno, rows.* REPLACE ({listed(changed)}) FROM {rows} JOIN places USING (capture)
                JOIN files USING (fileno) WHERE flow IS NULL"""
        return sql

    @staticmethod
    def relations_sql(rows: str) -> str:
        """Returns the relations between flows of one file."""
        changed = {"flow": "own.number", "other": "others.number", "judged": "if(judged = other, others.number, NULL)"}
        return f"""SELECT own.fileno, rows.* REPLACE ({listed(changed)}) FROM {rows} JOIN own USING (flow)
            JOIN own AS others ON others.flow = rows.other AND others.fileno = own.fileno"""

    def take_findings(self, trace: Trace) -> None:
        """Adds the findings of the chosen flows, as few of a kind for each file as an analysis of it has."""
        from wiretale.analyzer.findings.registry import every_finding, in_order

        flows = self.execute("SELECT flow, fileno, number FROM own").fetchall()
        places = {flow: (fileno, number) for flow, fileno, number in flows}
        by_file: dict[int, list[Ranked]] = {}
        for ranked in every_finding(trace.transfers):
            if ranked.finding.scope != "capture" and ranked.finding.flows and ranked.finding.flows[0][0] in places:
                by_file.setdefault(places[ranked.finding.flows[0][0]][0], []).append(ranked)
        trace.transfers.release_counts()
        for fileno, several in by_file.items():
            numbers = {flow: number for flow, (file, number) in places.items() if file == fileno}
            before = self.findings.setdefault(fileno, list(self.plan.slot[fileno].findings))
            before += [self.renumbered(ranked, fileno, numbers, len(before)) for ranked in in_order(several)]

    def renumbered(self, finding: Finding, fileno: int, numbers: dict[int, int], before: int) -> Finding:
        """Returns a finding with the numbers of a file, in which `before` others precede those of its analysis."""
        caps = self.caps[fileno]
        return finding._replace(
            flow=None if finding.flow is None else numbers[finding.flow],
            flows=tuple((numbers[flow], side) for flow, side in finding.flows if flow in numbers),
            frames=tuple(packet._replace(capture=caps[packet.capture or 0]) for packet in finding.frames),
            explained_by=None if finding.explained_by is None else finding.explained_by + before,
        )

    def write(self, number: int, made: Path) -> int:
        """Writes the tables of a file that have rows, and returns its number of flows."""
        file = self.plan.slot[number]
        self.insert_findings(number)
        counts: dict[str, int] = {}
        with utf8_name(made) as folder:
            for name in STORED_TABLES:
                (counts[name],) = self.execute(f"SELECT count(*) FROM slot_{name} WHERE fileno = {number}").fetchall()[
                    0
                ]
                if counts[name]:
                    copy_to(self.connection, {folder / f"{name}.parquet": self.file_sql(name, number)})
            rows = f"(FROM slot_interfaces WHERE fileno = {number})"
            row = capture_row(str(file.path), file.stamp[2], counts["flows"], self.interfaces[number], rows)
            copy_to(self.connection, {folder / "captures.parquet": row})
        return counts["flows"]

    def insert_findings(self, number: int) -> None:
        """Adds the findings of a file to its rows: those about the capture itself, and those of its flows."""
        findings = self.findings.get(number, self.plan.slot[number].findings)
        for place, finding in enumerate(findings, 1):
            for table, row in finding.rows(place):
                values = [number, place, *row]
                self.execute(f"INSERT INTO slot_{table} VALUES ({', '.join('?' * len(values))})", values)

    def file_sql(self, name: str, number: int) -> str:
        """Returns the SQL of the rows of a file, in the order of the analysis."""
        sql = TIME_SQL if name in WITH_INTEGERS else FINITE_SQL
        times = {column: sql.format(column) for column in self.times[name]}
        replaced = f"REPLACE ({listed(times)})" if times else ""
        return f"SELECT * EXCLUDE (fileno, row_place) {replaced} FROM slot_{name} WHERE fileno = {number} ORDER BY row_place"


def listed(columns: dict[str, str]) -> str:
    """Returns a list for SQL's REPLACE."""
    return ", ".join(f'{sql} AS "{name}"' for name, sql in columns.items())


def register_window(connection: duckdb.DuckDBPyConnection, trace: Trace) -> None:
    """Gives a connection the tables of a window. The flows of a slot are chosen by integers."""
    from wiretale.analyzer.query import register

    register(connection, trace, ("flows", *WITH_INTEGERS))
    register(connection, trace, [name for name in STORED_TABLES if name not in WITH_INTEGERS], TIMED)


def make_slot(slot: Slot, trace: Trace, earlier: Sequence[Earlier], partly: bool) -> bool:
    """Fills the tables of a slot. Returns false if a flow may go on, unless `partly`."""
    register_window(slot.connection, trace)
    slot.set_files(trace)
    slot.set_before(earlier)
    slot.choose()
    if not partly and slot.open_flows():
        return False
    slot.take(trace, first=True)
    for key, last_ns in slot.going_on()[:RESTS_MOST]:
        later = slot.plan.read(slot.options, last_ns + 1)
        register_window(slot.connection, later)
        slot.choose((key, last_ns))
        if not partly and slot.open_flows():
            return False
        slot.take(later, first=False)
    return True


def publish_slot(
    store: Path,
    connection: duckdb.DuckDBPyConnection,
    plan: Plan,
    options: AnalysisOptions,
    earlier: Sequence[Earlier],
    ending: bool,
) -> list[Published] | None:
    """Analyzes a window and publishes the files of its slot, each by one rename; None if a flow may go on beyond the window.

    InputError if a file is gone or has changed; OSError if the store cannot be written.
    """
    trace = plan.read(options)
    if gone := [file for file in plan.window if not file.is_here()]:
        raise InputError(f"{gone[0].path}: removed or changed while it was read")
    slot = Slot(connection, plan, options, cut=plan.complete)
    try:
        if not make_slot(slot, trace, earlier, plan.complete or ending):
            return None
        if columns_in(store) not in (None, columns_of(trace)):
            write_file(store, MARKER, marker(None, options))
        digests = stored(store)  # another process may have added some meanwhile
        return [publish_file(store, slot, number, digests) for number in range(len(plan.slot))]
    finally:  # the next analysis begins without the memory of this one
        for name in STORED_TABLES:
            for registered in (name, TIMED + name):
                connection.unregister(registered)
            connection.execute(f"DROP TABLE IF EXISTS slot_{name}")


def publish_file(store: Path, slot: Slot, number: int, digests: Container[str]) -> Published:
    """Publishes one file of a slot, unless it is known."""
    file, plan = slot.plan.slot[number], slot.plan
    entry = Earlier(
        place_of(store, file.digest, file.day()),
        file.digest,
        file.path.name,
        [window_file.digest for window_file in plan.slot],
        [window_file.digest for window_file in plan.window],
        plan.complete,
        max((window_file.last_ns for window_file in plan.window if window_file.last_ns is not None), default=None),
    )
    with staging(store, ADDING) as outer:
        made = outer / "capture"
        made.mkdir()
        flows = slot.write(number, made)
        (made / MANIFEST).write_text(manifest(made, file.digest, watch=watch_member(entry)))
        with publishing(store):
            if file.digest not in digests:
                publish(made, entry.folder)
    return Published(file, flows, entry)


def watch_member(entry: Earlier) -> dict[str, object]:
    """Returns the member `watch` of capture.json, by which watch continues after a restart."""
    return {
        "name": entry.name,
        "slot": entry.slot,
        "window": entry.window,
        "complete": entry.complete,
        "until_ns": entry.until_ns,
    }


def publish_fact(store: Path, connection: duckdb.DuckDBPyConnection, fact: Fact) -> tuple[Earlier, bool]:
    """Publishes a row of `captures` for a file without tables. Returns whether it is new."""
    entry = Earlier(place_of(store, fact.digest, fact.day), fact.digest, fact.path.name, [fact.digest], [], True, None)
    counts = f"(SELECT NULL::BIGINT AS packets, NULL::BIGINT AS first_ns, NULL::BIGINT AS last_ns, {quoted(fact.text)} AS damage)"
    row = capture_row(str(fact.path), fact.size or 0, 0, [], counts)
    unknown = ["packets", "flows", *(["bytes"] if fact.size is None else [])]
    with staging(store, ADDING) as outer:
        made = outer / "capture"
        made.mkdir()
        with utf8_name(made) as folder:
            nulls = dict.fromkeys(unknown, "NULL::BIGINT")
            copy_to(connection, {folder / "captures.parquet": f"SELECT * REPLACE ({listed(nulls)}) FROM ({row})"})
        (made / MANIFEST).write_text(manifest(made, fact.digest, watch=watch_member(entry)))
        with publishing(store):
            return entry, fact.digest not in stored(store) and publish(made, entry.folder)
