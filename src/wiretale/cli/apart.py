# SPDX-License-Identifier: Apache-2.0
"""Captures that are unrelated are judged apart: more than an hour lies between them, or their hosts never meet.

Merged, equal private addresses of different networks would be one host, and the time between the captures a pause.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from wiretale.analyzer.trace import analyze_with, is_lasting
from wiretale.cli.options import note

if TYPE_CHECKING:
    from wiretale.analyzer.causes.answer import Answer
    from wiretale.analyzer.options import AnalysisOptions
    from wiretale.analyzer.rows import InterfaceRow
    from wiretale.analyzer.trace import Trace
    from wiretale.cli.outputs import Outputs

HOUR_NS = 3_600 * 10**9
HOSTS_MOST = 64 << 20  # bytes of captures of one hour that are read one by one for their hosts
FILES_MOST = 16  # more are the files of one capture, as a rotation leaves them
MULTICAST = ("224.", "239.", "255.", "ff0", "0.0.0.0", "169.254.", "fe80:")  # each network has them


class Judged(NamedTuple):
    """What is shown of captures that belong together."""

    files: list[str]
    answer: Answer
    severity: str | None  # of the cause or the finding that answers; None if nothing stands out


def uninterrupted(trace: Trace) -> Trace:
    """Returns a trace. KeyboardInterrupt if Ctrl-C ended it, because groups need every capture."""
    if trace.interrupted:
        raise KeyboardInterrupt
    return trace


def by_time(files: Sequence[str], rows: Iterable[InterfaceRow]) -> list[list[str]]:
    """Returns the captures in groups between which more than an hour lies; one without a packet is with the first."""
    spans: dict[str, tuple[int, int]] = {}
    for row in rows:
        if row["first_ns"] is not None and row["last_ns"] is not None:
            first_ns, last_ns = spans.get(row["file"], (row["first_ns"], row["last_ns"]))
            spans[row["file"]] = min(first_ns, row["first_ns"]), max(last_ns, row["last_ns"])
    together: list[list[str]] = []
    end_ns = 0
    for file, (first_ns, last_ns) in sorted(spans.items(), key=lambda span: span[1]):
        if not together or first_ns > end_ns + HOUR_NS:
            together.append([])
        together[-1].append(file)
        end_ns = max(end_ns, last_ns)
    return with_others(together, files)


def with_others(groups: list[list[str]], files: Iterable[str]) -> list[list[str]]:
    """Returns groups of captures, whose first has those that are in none: nothing tells them apart."""
    placed = {file for group in groups for file in group}
    earliest, *later = groups or [[]]
    return [[*earliest, *(file for file in files if file not in placed)], *later]


def hosts_of(trace: Trace) -> set[str]:
    """Returns the addresses of a capture that belong to one host."""
    addresses = {*trace.flows.column("source"), *trace.flows.column("destination")}
    return {address for address in addresses if address and not address.startswith(MULTICAST)}


def by_hosts(files: Sequence[str], options: AnalysisOptions) -> list[list[str]]:
    """Returns the captures in groups that share no host; one without a host is with the first."""
    if not 1 < len(files) <= FILES_MOST or sum(map(os.path.getsize, files)) > HOSTS_MOST:
        return [list(files)]
    groups: list[tuple[set[str], list[str]]] = []
    for file in files:
        hosts, members = hosts_of(uninterrupted(analyze_with([file], options))), [file]
        for group in [group for group in groups if group[0] & hosts]:
            hosts, members = hosts | group[0], [*group[1], *members]
            groups.remove(group)
        if hosts:
            groups.append((hosts, members))
    together = with_others([members for _, members in groups], files)
    return [sorted(members, key=list(files).index) for members in together]


def groups_of(files: Sequence[str], options: AnalysisOptions) -> list[list[str]]:
    """Returns the captures that belong together; all of them if one cannot be read twice."""
    if len(files) < 2 or not all(map(is_lasting, files)):
        return [list(files)]
    rows = uninterrupted(analyze_with([list(files)], options, interfaces_only=True)).interfaces.rows()
    return [group for hour in by_time(files, rows) for group in by_hosts(hour, options)]


def judged(trace: Trace, files: Iterable[str]) -> Judged:
    """Returns what is shown of a trace."""
    answer = trace.answer
    rows = [trace.causes[answer.number - 1]] if answer.number else [trace.findings[n - 1] for n in answer.findings[:1]]
    return Judged(
        list(files),
        answer,
        str(rows[0]["severity"]) if rows else None,
    )


def merged_note(trace: Trace) -> None:
    """Says that captures were merged although more than an hour lies between them."""
    files = list(dict.fromkeys(trace.interfaces.column("file")))
    if len(files) > 1 and len(times := by_time(files, trace.interfaces.rows())) > 1:
        note(
            f"merged {len(files):,} captures of {len(times):,} times, more than an hour apart (--merge: without this line)"
        )


def show_apart(groups: Sequence[Sequence[str]], options: AnalysisOptions, outputs: Outputs) -> int:
    """Judges each group of captures by itself, and prints the screen of all. Returns the exit code."""
    from wiretale.cli.analyze import FAILED, checks_of, exit_code, note_undetermined, read
    from wiretale.reports.terminal.screen.apart import print_apart

    parts, code = [], 0
    for group in groups:
        trace = read(list(group), options, outputs.quiet)
        parts.append(judged(trace, group))
        checks = checks_of(trace, outputs)
        note_undetermined(checks)
        codes = exit_code(trace, bool(checks and not checks.passed)), code
        code = FAILED if FAILED in codes else max(codes)
        if trace.interrupted:
            break
    print_apart(parts, sys.stdout)
    return code
