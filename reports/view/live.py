# SPDX-License-Identifier: Apache-2.0
"""The page of a running analysis: that of the newest snapshot. It says which one it is of, and asks for a newer one.

A page keeps its flow numbers as long as it is open, so the tables that it needs are copied when it is sent. Packets come from the
capture files: those of a flow are read, and indexed, when the flow is chosen.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import mkdtemp
from threading import Lock
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.errors import InputError, UsageError
from wiretale.analyzer.index.capture_index import INDEX_FILE, CaptureIndex, write_index
from wiretale.analyzer.index.packet_store import PARQUET, connected, sql_path
from wiretale.analyzer.options import AnalysisOptions
from wiretale.analyzer.trace import analyze_with
from wiretale.reports.export.parquet import OPTIONS_FILE
from wiretale.reports.live.folder import Folder, first_time
from wiretale.reports.live.snapshots import ABOUT_FILE, PAGE_FILE, about
from wiretale.reports.view.answers import Answers, required
from wiretale.reports.view.folder import record_of

if TYPE_CHECKING:
    import duckdb

FLOWS_FILE = "flows.parquet"
KEPT = 8  # versions, and flows with packets
TRIES = 20  # to copy a snapshot that is replaced meanwhile
NS = 10**9
NUMBERED = ("capture", "datagram_capture")  # columns that number interfaces
WAITING = """<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="1"><title>wiretale</title>
<p>No file of the capture is finished yet: the page appears with the first one. A new file each ten seconds:
<code>wiretale capture -G 10</code></p>"""
FLOW = """
SELECT flow, protocol, ip_version, source, destination, path, first_frame, epoch_ns(first_ns) AS first_ns,
    epoch_ns(last_ns) AS last_ns, file, interface, epoch_ns(begin_ns) AS begin_ns
FROM read_parquet({flows}) JOIN (SELECT capture, file, interface, first_ns AS begin_ns FROM read_parquet({interfaces}))
    ON capture = first_capture
WHERE flow = ?
"""


class Live:
    """A folder of snapshots, and whether another one can follow. Answers have the errors of Answers."""

    def __init__(self, folder: Path, goes_on: Callable[[], bool] = lambda: True) -> None:
        self.folder, self.goes_on = folder, goes_on
        self._room = Path(mkdtemp(prefix="wiretale-view-"))
        self._versions: OrderedDict[str, Path] = OrderedDict()
        self._flows: OrderedDict[tuple[str, int], Answers] = OrderedDict()
        self._lock = Lock()
        names = ("packets", "tables", "frame", "stream")
        self.by_path = {"version": self.version, **{name: self._answer_to(name) for name in names}}

    def close(self) -> None:
        for answers in self._flows.values():
            answers.close()
        shutil.rmtree(self._room, ignore_errors=True)

    def version(self, query: Mapping[str, str]) -> dict[str, Any]:
        """The version of the newest snapshot, its age in seconds, and whether another one can follow."""
        newest = about(self.folder)
        if newest is None:
            return {"version": None, "age": None, "goes_on": self.goes_on()}
        age = max(0, time.time_ns() - newest["version"]) // NS
        return {"version": str(newest["version"]), "age": age, "goes_on": self.goes_on()}

    def page(self) -> bytes:
        """Returns the newest page."""
        with self._lock:
            for _ in range(TRIES):
                newest = about(self.folder)
                if newest is None:
                    return WAITING.encode()
                folder = self._versions.get(str(newest["version"])) or self._copied(str(newest["version"]))
                if folder:
                    return (folder / PAGE_FILE).read_bytes()
        raise InputError(f"{self.folder}: cannot be read as fast as it changes")

    def _copied(self, version: str) -> Path | None:
        """Copies the newest snapshot; None if it is another one, or was replaced meanwhile."""
        made = self._room / version
        made.mkdir(exist_ok=True)
        try:
            folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            return None
        try:
            for name in (ABOUT_FILE, PAGE_FILE, FLOWS_FILE, OPTIONS_FILE):
                with open(os.open(name, os.O_RDONLY, dir_fd=folder), "rb") as source, (made / name).open("wb") as copy:
                    shutil.copyfileobj(source, copy)
        except FileNotFoundError:
            return None
        finally:
            os.close(folder)
        if str((about(made) or {}).get("version")) != version:
            return None
        self._versions[version] = made
        while len(self._versions) > KEPT:
            shutil.rmtree(self._versions.popitem(last=False)[1], ignore_errors=True)
        return made

    def _answer_to(self, name: str) -> Any:
        def answer(query: Mapping[str, str]) -> dict[str, Any]:
            with self._lock:
                answers = self._answers(query.get("live", ""), required(query, "flow"))
            return answers.by_path[name](query)

        return answer

    def _answers(self, version: str, flow: int) -> Answers:
        """Returns the answers about a flow of a version."""
        if version not in self._versions:
            raise InputError("this page is of an older state: show the newest one")
        if (version, flow) not in self._flows:
            made = self._versions[version] / f"flow-{flow}"
            shutil.rmtree(made, ignore_errors=True)
            made.mkdir()
            index_flow(self._versions[version], flow, made)
            self._flows[version, flow] = Answers(CaptureIndex(made))
        self._flows.move_to_end((version, flow))
        while len(self._flows) > KEPT:
            self._flows.popitem(last=False)[1].close()
        return self._flows[version, flow]


def flow_in(version: Path, flow: int) -> dict[str, Any]:
    """Returns a flow of a version, with the file of its first packet. UsageError if there is none."""
    with connected(version) as connection:
        sql = FLOW.format(flows=sql_path(version / FLOWS_FILE), interfaces=sql_path(version / OPTIONS_FILE))
        cursor = connection.execute(sql, [flow])
        names, rows = [column[0] for column in cursor.description or ()], cursor.fetchall()
    if not rows:
        raise UsageError(f"there is no flow {flow}")
    return dict(zip(names, rows[0], strict=True))


def files_of(first: Path, last_ns: int, options: AnalysisOptions) -> list[str]:
    """Returns the files of a folder from the one with the first packet of a flow to that with its last one."""
    if not first.exists():
        raise InputError(f"{first}: is no longer there: the flow began in it")
    timed = []
    for file in Folder(first.parent).finished():
        try:
            begin_ns = first_time(file.path, options)
        except (InputError, FileNotFoundError):
            continue
        if begin_ns is not None and begin_ns <= last_ns:
            timed.append((begin_ns, os.fspath(file.path)))
    ordered = [path for _, path in sorted(timed)]
    return ordered[ordered.index(os.fspath(first)) :] if os.fspath(first) in ordered else [os.fspath(first)]


def pair_filter(flow: Mapping[str, Any], also: str | None) -> str | None:
    """Returns a pcap filter for the packets between the ends of a flow; that of the analysis alone if it is in a tunnel."""
    if flow["path"] or flow["source"] is None:
        return also
    pair = f"(host {flow['source']} and host {flow['destination']})"
    return f"({also}) and {pair}" if also else pair


def index_flow(version: Path, number: int, made: Path) -> None:
    """Writes the index of a flow's packets, with the numbers of the page. InputError if its files are gone."""
    flow = flow_in(version, number)
    captures, options = record_of(version)
    absolute = {path: place for path, place, _ in captures}
    first = Path(absolute.get(flow["file"], flow["file"]))
    files = files_of(first, flow["last_ns"] or 0, options)
    options = options._replace(filter=pair_filter(flow, options.filter))
    trace = analyze_with([files], options)
    columns = (trace.flows[name] for name in ("flow", "first_capture", "first_frame", "protocol"))
    paths = trace.interfaces["file"]
    in_index = next(
        (
            candidate
            for candidate, capture, frame, protocol in zip(*columns, strict=True)
            if (frame, protocol) == (flow["first_frame"], flow["protocol"]) and paths[capture] == os.fspath(first)
        ),
        None,
    )
    if in_index is None:
        raise InputError(f"{first}: does not have the first packet of flow {number}: it was replaced")
    base_ns = (about(version) or {})["base_ns"]
    write_index(trace, made, base_ns)
    with connected(made) as connection:
        sql = f"SELECT file, interface FROM read_parquet({sql_path(version / OPTIONS_FILE)}) ORDER BY capture"
        named = [(absolute.get(file, file), port) for file, port in connection.execute(sql).fetchall()]
        interfaces = numbers_in(named, list(zip(paths, trace.interfaces["interface"], strict=True)))
        renumber(
            connection,
            made,
            f"CASE flow WHEN {in_index} THEN {number} WHEN {number} THEN {in_index} ELSE flow END",
            interfaces,
        )
    place_interfaces(made, named, interfaces)


def numbers_in(named: list[tuple[str, int]], interfaces: list[tuple[str, int]]) -> list[int]:
    """Returns the number of each interface in the page, which has `named`; others follow these."""
    places = {place: number for number, place in enumerate(named)}
    return [places.setdefault(interface, len(places)) for interface in interfaces]


def renumber(connection: duckdb.DuckDBPyConnection, made: Path, flow: str, interfaces: list[int]) -> None:
    """Gives flows and interfaces of an index other numbers."""
    for path in sorted(made.glob("*.parquet")):
        source, changed = f"read_parquet({sql_path(path)})", path.with_suffix(".changed")
        columns = [row[0] for row in connection.execute(f"DESCRIBE FROM {source}").fetchall()]
        replaced = [f"{flow} AS flow"] if "flow" in columns else []
        replaced += [f"{interfaces}[{name} + 1] AS {name}" for name in columns if name in NUMBERED]
        connection.execute(
            f"COPY (SELECT * REPLACE ({', '.join(replaced)}) FROM {source}) TO {sql_path(changed)} ({PARQUET})"
        )
        os.replace(changed, path)


def place_interfaces(made: Path, named: list[tuple[str, int]], interfaces: list[int]) -> None:
    """Lists the files of interfaces by the numbers of the page; no frame is known of a file that was not read."""
    description = json.loads((made / INDEX_FILE).read_text("utf-8"))
    captures, in_index = description["captures"], dict(zip(interfaces, description["interfaces"], strict=True))
    listed = []
    for number in range(max(len(named), *(number + 1 for number in interfaces))):
        if number not in in_index:
            in_index[number] = len(captures)
            captures.append({**captures[0], "frames": 0})
        listed.append(in_index[number])
    (made / INDEX_FILE).write_text(json.dumps({**description, "interfaces": listed}), "utf-8")
