# SPDX-License-Identifier: Apache-2.0
"""Makes docs/tables.md from the schemas, and docs/findings.md from the rules: python .ci/make_docs.py [--check]."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from wiretale.analyzer import _core
from wiretale.analyzer.findings.registry import CHAPTERS, Page

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"

TABLES = """\
# Tables

Made from the code by `python .ci/make_docs.py`; `make lint` checks that it is up to date. In Python the tables have the
Arrow PyCapsule protocol (`wiretale.analyze(...).flows`), `-o DIR` writes them as Parquet, `--json` as arrays of objects.

## Terms

The **capture point** is the place at which the packets were captured. **Upstream** is the part of the path between the
sender of a packet and the capture point, **downstream** the part between the capture point and its receiver. Both are
relative to the direction of the packet: the upstream side of a client's data is the downstream side of its ACKs. If the
capture was made at the sender, every loss is downstream; if it was made at the receiver, every loss is upstream.

A **flow** is one conversation: addresses, ports and protocol, both directions. Its **initiator** sent the SYN, or the
first packet if the handshake was not captured. A **direction** is all that one endpoint of a flow sends. **Goodput** is the
rate of unique payload; wire bytes include all headers.

Sizes are in bytes, rates in bit/s. **A value is null, never 0, if it cannot be determined from the capture.** A frame
number is that of Wireshark, counted in the file that the `interfaces` row names.

| type | JSON, CSV, Python, SQL | Arrow | Parquet |
| --- | --- | --- | --- |
| `int`, `real`, `bool` | integer, real, boolean | int64, float64, bool | the same |
| `time` | integer: ns since the epoch | timestamp[ns, UTC] | timestamp[ns, UTC] |
| `duration` | integer: ns | duration[ns] | int64: ns, because Parquet has no type for it |
| `word` of a fixed list | text | dictionary of text | text, dictionary-encoded |
| `text`, `address`, `path` (a file name) | text | text | text |

`Trace.query()` and `wiretale.analyze(...).flows.with_integers()` give DuckDB integers, because its INTERVAL would round
durations to microseconds. If you read the Parquet files or Arrow tables with DuckDB, `epoch_ns(first_ns)` is the same
integer: `SELECT flow, epoch_ns(last_ns) - epoch_ns(first_ns) AS ns FROM 'DIR/flows.parquet'`.

In JSON, C1 controls and bidirectional controls are escaped (`\\u202e`). If a byte of a `path` is not UTF-8, it becomes a
lone surrogate, so that `os.fsencode()` of the decoded string returns the original name; in Arrow, Parquet and CSV it
becomes U+FFFD.

In CSV, text from a capture must not control a terminal or become a formula in a spreadsheet: control characters and
bidirectional controls are escaped (`\\n`, `\\x1b`, `\\u202e`), backslashes are doubled, and if the text then begins with
`=`, `+`, `-`, `@` or `'`, an apostrophe precedes it, which a reader should remove first. Numbers are not changed.

The `packets` table has one row per packet, so wiretale makes it only on request: `--tables packets` (also with `-o DIR`),
`trace.packets()`, a query that names it, or `analyze(..., keep_packets=True)`. If the rows were not kept, the file is read
a second time. Standard input cannot be read twice: without `keep_packets=True` the table is an error, never 0 rows. If a
capture has more than 2 million packets, `totals.packets_rows_dropped` counts the others.

## The JSON object

`wiretale analyze --json` prints one object. The number at the end of `schema` is raised if a member or column is removed,
renamed or changes its meaning; programs should ignore members that they do not use, because new ones do not raise it.

| member | meaning |
| --- | --- |
| `schema` | `wiretale.analyze/2` |
| `wiretale` | version of the program |
| `inputs` | input files in order; `-` is standard input |
| `interrupted` | true if Ctrl-C ended the analysis early |
| `totals` | `packets` and `flows` analyzed; `evicted_flows` (`--max-flows`), `evicted_datagrams`; `filter_refused`: \
packets of link types that the filter does not support; `packets_rows_dropped`, `events_dropped`, `blocks_dropped`: rows \
beyond a table's limit |
| `blocks_summary` | the directions with numbered packets or blocks: `application` and their columns of `directions` |
| `interfaces`, `flows`, `directions`, `datagrams`, `findings` | the tables below as arrays of row objects; `--tables A,B` \
chooses |
"""

FINDINGS = """\
# Findings

Made from the code by `python .ci/make_docs.py`; `make lint` checks that it is up to date. `wiretale explain --code
CODE` shows one page, `wiretale explain --list` all codes.

A finding has a code, a severity, a scope, a sentence, a cost with its unit, evidence (frames or rows), advice and a
Wireshark display filter. Findings are sorted by severity (error, warning, info). Within a severity, findings that may
affect the whole capture come first, then those of the greatest `impact`, the affected share of the trace's wire bytes.
If a capture is healthy, it has no warning.

Rules about transfers examine the 50 largest flows. Rules about the time of TCP transfers also examine up to 500 smaller
flows that stalled the longest; `wiretale explain` reports how many are left out. Counts include every flow.

Upstream is the sender's side of the capture point, downstream the receiver's. Results marked unknown cannot be
determined from the capture.
"""

Column = tuple[str, str, str, str]


def column_line(column: Column) -> str:
    name, kind, unit, meaning = (cell.replace("|", "\\|") for cell in column)
    return f"| `{name}` | {kind} | {unit} | {meaning} |"


def table_section(name: str, row: str, columns: list[Column]) -> str:
    head = [f"## {name}", "", f"A row is {row}.", "", "| column | type | unit | meaning |", "| --- | --- | --- | --- |"]
    return "\n".join([*head, *map(column_line, columns), ""])


def finding_section(page: Page) -> str:
    parts = [f"### {page.code}", f"**{page.title}** ({page.severity}). {page.computed}", f"*Unknown:* {page.unknown}"]
    if page.weakens:
        parts.append(f"*Makes doubtful:* {page.weakens}")
    return "\n\n".join([*parts, ""])


def chapter_section(title: str, pages: Sequence[Page]) -> str:
    return "\n".join([f"## {title}", "", *map(finding_section, pages)])


def missing_paths(page: str) -> list[str]:
    """Returns the paths that a page names between backticks and that do not exist."""
    names = re.findall(r"`([a-z\d_.*-]+/[a-z\d_.*/-]*)`", (ROOT / page).read_text("utf-8"))
    bases = [ROOT / folder for folder in ("", "analyzer", "analyzer/core", "benchmarks", "reports", "traffic")]
    return [
        f"{page} names {name}, which does not exist"
        for name in names
        if not any(list(base.glob(name.rstrip("/"))) for base in bases)
    ]


def main() -> int:
    """Writes the pages; with --check, returns 1 if one is out of date or a guide names a missing path."""
    made = {
        "tables.md": [TABLES, *(table_section(*schema) for schema in _core.schemas())],
        "findings.md": [FINDINGS, *(chapter_section(*chapter) for chapter in CHAPTERS.items())],
    }
    stale = [name for name, parts in made.items() if (DOCS / name).read_text("utf-8") != "\n".join(parts)]
    if sys.argv[1:] == ["--check"]:
        wrong = [f"docs/{name} is out of date: python .ci/make_docs.py" for name in stale]
        wrong += [*missing_paths("docs/ARCHITECTURE.md"), *missing_paths("CONTRIBUTING.md")]
        print("".join(f"{line}\n" for line in wrong), end="", file=sys.stderr)
        return bool(wrong)
    for name in stale:
        (DOCS / name).write_text("\n".join(made[name]), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
