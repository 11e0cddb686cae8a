# SPDX-License-Identifier: Apache-2.0
"""The types of rows: columns have the types of analyzer/rows.py, and only those that can be null there are ever null."""

from __future__ import annotations

import typing

import pytest

import wiretale
from checkout import CAPTURES
from wiretale.analyzer import _core, rows

TYPES = {
    table: typing.get_type_hints(kind)
    for table, kind in zip(
        (table for table, *_ in _core.schemas()),
        (kind for kind in vars(rows).values() if typing.is_typeddict(kind)),
        strict=True,
    )
}


def test_each_table_has_the_type_of_its_rows() -> None:
    for table, _, columns in _core.schemas():
        assert list(TYPES[table]) == [column for column, *_ in columns]


def test_columns_have_the_types_of_rows() -> None:
    for path in CAPTURES:
        trace = wiretale.analyze(path, keep_packets=True)
        for table, types in TYPES.items():
            for column, kind in types.items():
                kinds = {type(value) for value in trace.table(table)[column]}
                allowed = set(typing.get_args(kind) or (kind,))
                assert kinds <= allowed, f"{path.name}: {table}.{column} has values of {kinds - allowed}"


def test_a_finding_without_a_code_is_refused() -> None:
    core = wiretale.analyze(CAPTURES[0])._core
    _, *nulls = (None for _ in TYPES["findings"])
    with pytest.raises(ValueError, match=r"findings\.code is null"):
        core.add_row("findings", (1, *nulls))


def test_a_caller_adds_rows_of_findings_alone() -> None:
    core = wiretale.analyze(CAPTURES[0])._core
    core.add_row("finding_frames", (1, 0, 2, "lost"))
    with pytest.raises(ValueError, match="rows of flows come from the core"):
        core.add_row("flows", ())
    with pytest.raises(ValueError, match="no word of the tables: lots"):
        core.add_row("finding_frames", (1, 0, 2, "lots"))
