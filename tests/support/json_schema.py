# SPDX-License-Identifier: Apache-2.0
"""Objects that commands print with --json, checked by the JSON Schemas of the package."""

from __future__ import annotations

import json
from typing import Any

from checkout import ROOT

SCHEMAS = ROOT / "reports" / "export" / "schemas"


def closed(schema: Any) -> Any:
    """The schema without room for further members, unless any name may be one."""
    if not isinstance(schema, dict):
        return schema
    inner = {
        name: {key: closed(member) for key, member in part.items()} if name == "properties" else closed(part)
        for name, part in schema.items()
    }
    return {"additionalProperties": False, **inner} if "properties" in schema else inner


def check_schema(document: dict[str, Any]) -> str:
    """Validates an object, which must have no member that its schema lacks; returns the name of the schema. It checks nothing
    without jsonschema, or outside a checkout."""
    name = str(document["schema"])
    try:
        import jsonschema
    except ImportError:
        return name
    if not SCHEMAS.exists():
        return name
    (path,) = SCHEMAS.glob(f"*/{name.removeprefix('wiretale.').replace('/', '-')}.json")
    schema = json.loads(path.read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(closed(schema)).validate(document)
    return name
