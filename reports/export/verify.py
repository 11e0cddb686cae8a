# SPDX-License-Identifier: Apache-2.0
"""`wiretale verify --json`: wiretale's verdicts and Wireshark's in one JSON object."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from wiretale.analyzer.verify.comparison import Comparison

SCHEMA = "wiretale.verify/1"


def write_error(path: str, why: str, versions: tuple[str, str], out: IO[str]) -> None:
    """Writes the object of a file that was not compared."""
    document = {"schema": SCHEMA, "wiretale": versions[0], "wireshark": versions[1], "file": path, "error": why}
    out.write(json.dumps(document) + "\n")


def write_json(path: str, comparison: Comparison, versions: tuple[str, str], out: IO[str]) -> None:
    """Writes one object, in one line; `versions` are wiretale's and Wireshark's."""
    reasons = [{**reason._asdict(), "count": count} for reason, count in comparison.reasons.most_common()]
    document = {
        "schema": SCHEMA,
        "wiretale": versions[0],
        "wireshark": versions[1],
        "file": path,
        "kinds": {kind: asdict(count) for kind, count in comparison.kinds.items()},
        "reasons": reasons,
        "events_dropped": comparison.around.dropped,
        "not_compared": dict(comparison.not_compared),
        "error": comparison.problem,
        "last_frame": comparison.last_frame,
    }
    # There may be many differences: each is serialized alone.
    out.write(json.dumps(document)[:-1] + ', "differences": [')
    for number, difference in enumerate(comparison.differences):
        out.write(", " * bool(number) + json.dumps(difference._asdict()))
    out.write("]}\n")
