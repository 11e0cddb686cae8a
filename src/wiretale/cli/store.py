# SPDX-License-Identifier: Apache-2.0
"""Keep the analyses of many captures in a folder of Parquet files, and ask questions across all of them. A capture is kept once
by its content; DuckDB alone can read the folder.
"""

from __future__ import annotations

import argparse
import math
import sys
from typing import TYPE_CHECKING

from wiretale.cli.options import (
    add_analysis_options,
    add_json,
    analysis_options,
    count_bar,
    duration,
    folder,
    note,
    option,
    print_json,
    whole_number,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from wiretale.cli.parser import Commands, Parser

USAGE = "wiretale store ACTION DIR [options]"
NOTES = """\
Every table of docs/tables.md is a view, with the columns day and capture_id added; captures has one row for each file. A
condition on day or capture_id skips all other files. docs/store.md has the layout, and how DuckDB alone reads it.
"""
EXAMPLES = """\
# the captures of a day, each once
wiretale store add archive/ captures/2026-11-22/
# who lost most, in all of them
wiretale store flows archive/ --where "lost > 100"
wiretale store top archive/ --by applications --where "day >= '2026-11-01'"
# any question
wiretale store query archive/ "SELECT day, count(*) FROM flows GROUP BY day ORDER BY day"
# one file per table and day, and keep a month
wiretale store compact archive/
wiretale store prune archive/ --age 30d
"""
EXIT_CODES = (0, 2, 3, 4, 130, 143)
EXIT_TEXTS = {3: "done, but a capture is damaged, truncated or skipped, or a check found problems"}
DAMAGED, UNREADABLE = 3, 4
COMPACT_AGE_NS = 2 * 86_400 * 10**9
ROWS_SHOWN = 50
ROWS_MOST = 10_000_000
WHERE_HELP = "SQL condition on the columns, such as \"destination_port = 443 and day = '2026-11-22'\""
ADD = ("analyze captures and keep their tables", "DIR FILE... [-q]", "wiretale store add archive/ captures/")
QUERY = ("run one SELECT over all captures", 'DIR "SQL" [options]', "wiretale store query archive/ 'FROM captures'")
FLOWS = (
    "list flows, the largest first",
    "DIR [options]",
    "wiretale store flows archive/ --where \"source = '10.0.0.1'\"",
)
FINDINGS = (
    "list findings, the most severe first",
    "DIR [options]",
    "wiretale store findings archive/ --where \"code = 'timeouts'\"",
)
TOP = ("sum traffic by host, pair, port, application or day", "DIR [options]", "wiretale store top archive/ --by pairs")
PRUNE = (
    "remove old captures",
    "DIR --age TIME | --size BYTES [-n]",
    "wiretale store prune archive/ --age 30d\nwiretale store prune archive/ --size 50G -n",
)
COMPACT = (
    "write the captures of each day into one file per table, which queries read faster",
    "DIR [--age TIME] [-q]",
    "wiretale store compact archive/",
)
CHECK = ("read every file and compare it with its checksum", "DIR [--json]", "wiretale store check archive/")


def size(text: str) -> int:
    """Returns bytes, from `50G`."""
    from wiretale.analyzer.units import parse_bytes

    count = parse_bytes(text)
    if count is None:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a size such as 500M or 50G")
    return count


def add_action(
    actions: Commands, name: str, words: tuple[str, str, str], action: Callable[[argparse.Namespace], int]
) -> Parser:
    """Adds an action."""
    text, usage, examples = words
    parser = actions.add_parser(
        name, help=text, usage=f"wiretale store {name} {usage}", description=f"{text[0].upper()}{text[1:]}."
    )
    parser.set_defaults(command=run, action=action)
    option(parser, "store", "DIR", "the folder of the store", type=folder)
    return parser.describe(examples, EXIT_CODES, "", EXIT_TEXTS)


def add_listing(parser: Parser, where: bool = True) -> None:
    """Adds the options of actions that print rows."""
    if where:
        option(parser, "--where", "SQL", WHERE_HELP)
    text = f"print at most N rows (default: {ROWS_SHOWN}; with --json all)"
    option(parser, "--limit", "N", text, type=whole_number(1, ROWS_MOST))
    add_json(parser, " instead of a table")


def add_options(parser: Parser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True, prog="wiretale store")
    add = add_action(actions, "add", ADD, add_captures)
    option(add, "files", "FILE", "a capture, or a directory of captures", nargs="+")
    option(add, "-q --quiet", None, "print nothing but errors")
    add_analysis_options(add.add_argument_group("input"))
    query = add_action(actions, "query", QUERY, list_rows)
    option(query, "sql", "SQL", "a SELECT statement of DuckDB")
    add_listing(query, where=False)
    for name, words in (("flows", FLOWS), ("findings", FINDINGS)):
        listing = add_action(actions, name, words, list_rows)
        listing.set_defaults(listing=name)
        add_listing(listing)
    top = add_action(actions, "top", TOP, list_rows)
    groups = ("hosts", "pairs", "ports", "applications", "days")
    option(top, "--by", "|".join(groups), "what to sum by (default: hosts)", choices=groups, default="hosts")
    add_listing(top)
    prune = add_action(actions, "prune", PRUNE, prune_captures)
    option(prune, "--age", "TIME", "remove captures whose day ended longer ago", type=duration)
    option(prune, "--size", "BYTES", "remove the oldest until the rest takes at most BYTES", type=size)
    option(prune, "-n --dry-run", None, "list what would be removed, and remove nothing")
    option(prune, "-q --quiet", None, "print nothing but errors")
    compact = add_action(actions, "compact", COMPACT, compact_captures)
    text = "leave captures that were added less than TIME ago (default: 2d)"
    option(compact, "--age", "TIME", text, type=duration, default=COMPACT_AGE_NS)
    option(compact, "-q --quiet", None, "print nothing but errors")
    add_json(add_action(actions, "check", CHECK, check_store), " with all problems")


def run(arguments: argparse.Namespace) -> int:
    code: int = arguments.action(arguments)
    return code


def add_captures(arguments: argparse.Namespace) -> int:
    """wiretale store add."""
    from collections import Counter

    from wiretale.analyzer.capture_paths import expand_paths
    from wiretale.analyzer.units import plural
    from wiretale.reports.store.add import add

    counts: Counter[str] = Counter()
    paths = expand_paths(arguments.files, local=True)
    with count_bar("analyzing", len(paths), arguments.quiet) as advance:
        for capture in add(arguments.store, paths, advance, analysis_options(arguments)):
            counts[capture.outcome] += 1
            if capture.outcome == "failed":
                note(capture.reason)
            elif capture.outcome == "damaged":
                note(f"{capture.path}: added up to the damage: {capture.reason.removeprefix(f'{capture.path}: ')}")
    if not arguments.quiet and set(counts) != {"failed"}:
        added = plural(counts["added"] + counts["damaged"], "capture")
        before = f", {counts['present']:,} already there" if counts["present"] else ""
        note(f"{arguments.store}: added {added}{before}")
    return UNREADABLE if counts["failed"] else DAMAGED if counts["damaged"] else 0


def sql_of(arguments: argparse.Namespace, limit: int) -> str:
    """Returns the SELECT of an action."""
    from wiretale.reports.store import lists

    if "sql" in arguments:
        return str(arguments.sql)
    if "by" in arguments:
        return lists.top_sql(arguments.by, arguments.where, limit, arguments.json)
    listing = lists.flows_sql if arguments.listing == "flows" else lists.findings_sql
    return listing(arguments.where, limit, arguments.json)


def json_value(value: object) -> object:
    """Returns a value as JSON has it, which lacks infinity and NaN."""
    if isinstance(value, list):
        return list(map(json_value, value))
    return None if isinstance(value, float) and not math.isfinite(value) else value


def list_rows(arguments: argparse.Namespace) -> int:
    """wiretale store query, flows, findings and top."""
    from wiretale.reports.store.layout import SCHEMA
    from wiretale.reports.store.views import connect, consistent, select

    limit = arguments.limit or (ROWS_MOST if arguments.json else ROWS_SHOWN)
    sql = sql_of(arguments, limit + 1)

    def answer() -> tuple[list[tuple[str, str]], list[tuple[Any, ...]]]:
        with connect(arguments.store, sql) as connection:
            where = getattr(arguments, "where", None)
            return select(connection, sql, limit + 1, lists=arguments.json, where=where)

    columns, rows = consistent(arguments.store, answer)
    if arguments.json:
        names = [name for name, _ in columns]
        values = (map(json_value, row) for row in rows[:limit])
        print_json({"schema": SCHEMA, "rows": [dict(zip(names, row, strict=True)) for row in values]})
    else:
        from wiretale.reports.store.lists import SPARE
        from wiretale.reports.terminal.store import print_rows

        spare = SPARE.get(getattr(arguments, "listing", ""), ())
        print_rows(columns, rows[:limit], len(rows) > limit, sys.stdout, spare)
    return 0


def prune_captures(arguments: argparse.Namespace) -> int:
    """wiretale store prune."""
    from wiretale.analyzer.errors import UsageError
    from wiretale.analyzer.units import plural, show_bytes
    from wiretale.reports.store.upkeep import chosen_for_removal, listed, prune

    if arguments.age is None and arguments.size is None:
        raise UsageError("store prune needs --age, --size or both")
    choose = chosen_for_removal if arguments.dry_run else prune
    doomed = choose(arguments.store, arguments.age, arguments.size)
    size_of, count = sum(place.bytes for place in doomed), sum(place.captures for place in doomed)
    if arguments.dry_run:
        for line in listed(arguments.store, doomed):
            print(line)
    if not arguments.quiet:
        verb = "would remove" if arguments.dry_run else "removed"
        note(f"{arguments.store}: {verb} {plural(count, 'capture')} ({show_bytes(size_of)})")
    return 0


def compact_captures(arguments: argparse.Namespace) -> int:
    """wiretale store compact."""
    from wiretale.analyzer.units import plural
    from wiretale.reports.store.compact import compact

    done = list(compact(arguments.store, arguments.age))
    if not arguments.quiet:
        count = plural(sum(place.captures for place in done), "capture")
        note(f"{arguments.store}: compacted {count} of {plural(len(done), 'day')}")
    return 0


def check_store(arguments: argparse.Namespace) -> int:
    """wiretale store check."""
    from wiretale.reports.store.layout import SCHEMA
    from wiretale.reports.store.upkeep import check

    problems = list(check(arguments.store))
    if arguments.json:
        print_json(
            {"schema": SCHEMA, "problems": [{"path": str(problem.path), "text": problem.text} for problem in problems]}
        )
    else:
        for problem in problems:
            print(f"{problem.path}: {problem.text}")
        print("no problems" if not problems else f"{len(problems):,} problems" if len(problems) > 1 else "1 problem")
    return DAMAGED if problems else 0
