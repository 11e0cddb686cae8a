# SPDX-License-Identifier: Apache-2.0
"""Makes reports/export/schemas/: the JSON Schema of each --json, from the tables and the shapes of json_shapes.py."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from json_shapes import BESIDE_COLUMNS, SHAPES
from json_shapes_programs import Nullable

from wiretale.analyzer.causes.answer import Answer
from wiretale.reports.export.analyze import SCHEMA, TABLES

Column = tuple[str, str, str, str, bool]
Schema = dict[str, Any]
KINDS = {"real": "number", "bool": "boolean", **dict.fromkeys(("int", "time", "duration"), "integer")}  # else a string
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def column_schema(column: Column) -> Schema:
    """Returns the schema of a column; one that is null in the whole table is left out of --json."""
    _, kind, unit, meaning, nullable = column
    basic = KINDS.get(kind, "string")
    described = {"description": f"{meaning} ({unit})" if unit else meaning} if meaning else {}
    return {"type": [basic, "null"] if nullable else basic, **described}


def table_schema(meaning: str, columns: Sequence[Column]) -> Schema:
    """Returns the schema of a table: its rows as objects."""
    members = {column[0]: column_schema(column) for column in columns}
    required = [column[0] for column in columns if not column[4]]
    row = {"type": "object", "properties": members, "required": required}
    return {"type": "array", "description": f"A row is {meaning}.", "items": row}


def nullable(kind: str) -> Schema:
    return {"type": [kind, "null"]}


def answer_schema() -> Schema:
    """Returns the schema of the answer."""
    cost = {"type": "object", "additionalProperties": nullable("integer")}
    frame = {
        "type": "object",
        "properties": {"capture": {"type": "integer"}, "frame": {"type": "integer"}, "role": {"type": "string"}},
        "required": ["capture", "frame", "role"],
    }
    texts = {name: nullable("string") for name in ("caveat", "cause", "certainty", "place", "advice")}
    members = {
        "sentence": {"type": "string"},
        **texts,
        "number": nullable("integer"),
        "findings": {"type": "array", "items": {"type": "integer"}},
        "cost": cost,
        "frames": {"type": "array", "items": frame},
        "next_steps": {"type": "array", "items": {"type": "string"}},
    }
    return {"type": "object", "properties": members, "required": list(Answer._fields)}


def conditions_schema() -> Schema:
    """Returns the schema of the conditions of --fail-if."""
    members = {
        "condition": {"type": "string"},
        "value": {"type": ["number", "string", "null"]},
        "unit": {"type": "string"},
        "holds": nullable("boolean"),
    }
    return {"type": "array", "items": {"type": "object", "properties": members, "required": list(members)}}


def analyze_schema(schemas: Sequence[tuple[str, str, Sequence[Column]]]) -> Schema:
    """Returns the schema of the object."""
    tables = {name: table_schema(meaning, columns) for name, meaning, columns in schemas}
    members: Schema = {
        "schema": {"const": SCHEMA},
        "wiretale": {"type": "string", "description": "version of the program"},
        "inputs": {"type": "array", "items": {"type": "string"}},
        "answer": answer_schema(),
        "interrupted": {"type": "boolean"},
        "totals": {"type": "object", "additionalProperties": {"type": "integer"}},
        "blocks_summary": {"type": "array", "items": {"type": "object"}},
        "judged": {"type": "object"},
        "conditions": conditions_schema(),
        "failed": {"type": "boolean", "description": "whether a condition of --fail-if holds or is undetermined"},
        **tables,
    }
    required = [name for name in members if name not in {*tables, "conditions", "failed"}]
    body = {
        "description": f"Tables without --tables: {', '.join(TABLES)}. New members may be added.",
        "type": "object",
        "properties": members,
        "required": required,
    }
    return headed(SCHEMA, "wiretale analyze --json", body)


def shaped(shape: Any, tables: dict[str, Schema]) -> Schema:
    """Returns the schema of a shape (json_shapes.py)."""
    if isinstance(shape, Nullable):
        inner = shaped(shape.shape, tables)
        return {**inner, "type": [inner["type"], "null"]}
    if isinstance(shape, list):
        return {"type": "array", "items": shaped(shape[0], tables)}
    if isinstance(shape, str):
        kinds = [*shape.removesuffix("?").split("|"), *["null"] * shape.endswith("?")]
        return tables[shape] if shape in tables else {} if shape == "any" else {"type": kinds if kinds[1:] else shape}
    members = {name.removesuffix("~"): shaped(part, tables) for name, part in shape.items() if name != "*"}
    required = [name for name in shape if name != "*" and not name.endswith("~")]
    named = {"properties": members, "required": required} if members else {}
    return {"type": "object", **named, **({"additionalProperties": shaped(shape["*"], tables)} if "*" in shape else {})}


def with_members(table: Schema, members: dict[str, Any]) -> Schema:
    """Returns the schema of a table with further members in each row."""
    row, beside = table["items"], shaped(members, {})
    joined = {
        "properties": row["properties"] | beside["properties"],
        "required": row["required"] + beside["required"],
    }
    return {**table, "items": {**row, **joined}}


def headed(name: str, title: str, body: Schema) -> Schema:
    """Returns the schema of an object with its identity."""
    return {"$schema": DIALECT, "$id": f"urn:{name.replace('/', ':').replace('.', ':')}", "title": title, **body}


def schema_texts(schemas: Sequence[tuple[str, str, Sequence[Column]]]) -> dict[str, str]:
    """Returns the files by their names."""
    tables = {name: table_schema(meaning, columns) for name, meaning, columns in schemas}
    beside = {name: with_members(tables[name], members) for name, members in BESIDE_COLUMNS.items()}
    texts = {SCHEMA: analyze_schema(schemas)}
    for name, (commands, members) in SHAPES.items():
        body = shaped({"schema": "string", **members}, beside)
        body["properties"]["schema"] = {"const": name}
        texts[name] = headed(name, f"wiretale {commands}: --json", body)
    return {
        f"{folder_of(name)}/{name.removeprefix('wiretale.').replace('/', '-')}.json": json.dumps(
            text, indent=1, ensure_ascii=False
        )
        + "\n"
        for name, text in texts.items()
    }


def folder_of(name: str) -> str:
    """Returns the folder of a schema: the program that prints it, the analyzer for all others."""
    folders = {"experiment": "lab", **{program: program for program in ("capture", "traffic", "lab")}}
    return folders.get(SHAPES[name][0].split()[0], "analyzer") if name in SHAPES else "analyzer"
