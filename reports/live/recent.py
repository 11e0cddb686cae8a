# SPDX-License-Identifier: Apache-2.0
"""The flows that ended lately and those that are open, as one analysis.

A running analysis hands over ended flows after each file; those of the last files are kept, and joined with the open ones when a
snapshot is made: flows are numbered by their first packets, and interfaces by theirs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from wiretale.analyzer import _core
from wiretale.analyzer.query import SETTINGS
from wiretale.analyzer.table import OF_FLOWS, Joined, Table

COLUMNS = {name: [(column, kind) for column, kind, *_ in columns] for name, _, columns in _core.schemas()}
OF_INTERFACES = ("second_ports", "decode_stops", "neighbors", "announcers", "groups")
#: columns that number interfaces
CAPTURES = {"capture", "first_capture", "second_capture", "pause_capture", "before_capture", "after_capture"}
TEXTS = {"word", "text", "path", "address"}
# An interface is named by each analysis with a flow that it has packets of, and its packets are counted where they were read.
PLACES = """
CREATE TABLE places AS SELECT table_number AS origin, capture AS own,
    dense_rank() OVER (ORDER BY first_ns, file, interface) - 1 AS place,
    row_number() OVER (PARTITION BY first_ns, file, interface ORDER BY packets DESC, table_number DESC) AS rank
FROM joined_interfaces
"""
NUMBERS = """
CREATE TABLE numbers AS SELECT table_number AS origin, flow AS own,
    row_number() OVER (ORDER BY first_ns, place, first_frame, table_number, flow) - 1 AS number
FROM joined_flows LEFT JOIN places ON origin = table_number AND places.own = first_capture
"""


def statement(name: str) -> str:
    """Returns the SQL of a table of all analyses, in the order of one."""
    columns = [column for column, _ in COLUMNS[name]]
    replaced = [
        f'(SELECT place FROM places WHERE origin = t.table_number AND own = t."{column}") AS "{column}"'
        for column in columns
        if column in CAPTURES
    ]
    replaced += [f't."{column}"::VARCHAR AS "{column}"' for column, kind in COLUMNS[name] if kind in TEXTS]
    numbered = "flow" in columns
    replaced += ["n.number AS flow"] if numbered else []
    source = f"SELECT row_number() OVER () AS row, * FROM joined_{name}"
    join = "LEFT JOIN numbers AS n ON n.origin = t.table_number AND n.own = t.flow" if numbered else ""
    if name == "interfaces":
        join = "JOIN places AS p ON p.origin = t.table_number AND p.own = t.capture AND p.rank = 1"
    order = "time_ns, capture, frame" if name == "events" else "flow" if numbered else "capture"
    listed = ", ".join(f'"{column}"' for column in columns)
    rows = f"SELECT t.* REPLACE ({', '.join(replaced)}) FROM ({source}) AS t {join}"
    return f"SELECT {listed} FROM ({rows}) ORDER BY {order}, table_number, row"


def joined(cores: Sequence[_core.Analysis]) -> _core.Analysis:
    """Returns one analysis of the flows of several ones that were taken one after another, without findings."""
    import duckdb

    totals = Counter[str]()
    for core in cores:
        totals.update(core.totals())
    excluded = [span for core in cores if (span := core.excluded())]
    spent = (
        sum(span[0] for span in excluded),
        min((span[1] for span in excluded), default=0),
        max((span[2] for span in excluded), default=0),
    )
    names = ("interfaces", *OF_INTERFACES, *OF_FLOWS)
    with duckdb.connect(config=dict(SETTINGS)) as connection:
        connection.execute("SET threads = 2; SET memory_limit = '400MB'")
        for name in names:
            connection.register(f"joined_{name}", Joined([Table(core.table(name)) for core in cores]))
        connection.execute(PLACES)
        connection.execute(NUMBERS)

        def streams() -> Iterator[tuple[str, object]]:
            for name in sorted(names, key=lambda name: name != "flows"):
                yield name, connection.sql(statement(name)).__arrow_c_stream__()

        return _core.Analysis.joined(streams(), dict(totals), [row for core in cores for row in core.judged()], spent)
