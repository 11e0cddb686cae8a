# SPDX-License-Identifier: Apache-2.0
"""The tables as one JSON object, written as it is made.

No library is needed for it and no row becomes a Python object: this is the way for scripts and for large captures.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from wiretale.analyzer.trace import Trace

SCHEMA = "wiretale.analyze/1"
TABLES = ("captures", "flows", "directions", "datagrams", "findings")


def head(trace: Trace, version: str) -> dict[str, object]:
    """What stands before the tables."""
    return {
        "schema": SCHEMA,
        "wiretale": version,
        "inputs": [path.encode(errors="surrogateescape").decode(errors="replace") for path in trace.inputs],
        "interrupted": trace.interrupted,
        "totals": trace.totals,
        "blocks_summary": [],  # no capture is searched for blocks by this version
    }


def write_json(trace: Trace, version: str, out: IO[bytes], tables: Sequence[str] = TABLES) -> None:
    """Writes one object: `schema`, `wiretale`, and an array of row objects for each table."""
    out.write(json.dumps(head(trace, version)).encode()[:-1])
    for name in tables:
        out.write(f',\n"{name}":'.encode())
        for piece in trace.table(name).json():
            out.write(piece)
    out.write(b"}\n")
