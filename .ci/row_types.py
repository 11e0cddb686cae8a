# SPDX-License-Identifier: Apache-2.0
"""Makes analyzer/rows.py from the schemas: the type of a row of each table, for mypy."""

from __future__ import annotations

from collections.abc import Sequence

HEAD = '''# SPDX-License-Identifier: Apache-2.0
"""The type of a row of each table (docs/tables.md): a column that can be null is `| None`. Made by .ci/make_docs.py."""

from typing import TypedDict
'''
TYPES = {"real": "float", "bool": "bool", **dict.fromkeys(("int", "time", "duration"), "int")}  # else text
Column = tuple[str, str, str, str, bool]


def row_name(table: str) -> str:
    """`FlowRow` of flows, `QueryRow` of queries, `TimeSpanRow` of time_spans."""
    singular = table if table == "series" else table[:-3] + "y" if table.endswith("ies") else table.removesuffix("s")
    return "".join(map(str.capitalize, singular.split("_"))) + "Row"


def row_type(table: str, meaning: str, columns: Sequence[Column]) -> str:
    """Returns the TypedDict of a row."""
    fields = (f"    {name}: {TYPES.get(kind, 'str')}{' | None' * nullable}" for name, kind, _, _, nullable in columns)
    docstring = f'    """{meaning[0].upper()}{meaning[1:]}."""'
    return "\n".join([f"class {row_name(table)}(TypedDict):", docstring, "", *fields, ""])


def module_text(schemas: Sequence[tuple[str, str, Sequence[Column]]]) -> str:
    """Returns the whole module."""
    return "\n\n".join([HEAD, *(row_type(*schema) for schema in schemas)])
