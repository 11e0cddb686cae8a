# SPDX-License-Identifier: Apache-2.0
"""Commands in the page, which must work in a shell in the directory of the analysis (or of a capture that was given by its whole
path), whatever the files are called."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from wiretale.analyzer.options import NO_OPTIONS
from wiretale.analyzer.time import show_time
from wiretale.analyzer.trace import is_lasting
from wiretale.reports.phrases import file_words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wiretale.analyzer.findings.evidence import Evidence
    from wiretale.analyzer.trace import Trace

AROUND = "0.1"  # seconds of traffic before and after the packets of a finding that its command copies


def page_words(files: Iterable[str], served: bool) -> list[str]:
    """Returns files as words of a command. A page that others get has no absolute path: its commands run in the folder of the
    capture."""
    return file_words(files if served else map(page_name, files))


def page_name(file: str) -> str:
    """Returns the name of a file as a page has it that others get.

    >>> page_name("/home/me/a.pcap"), page_name("site/a.pcap")
    ('a.pcap', 'site/a.pcap')
    """
    return PurePath(file).name if PurePath(file).is_absolute() else file


def numbers_are_usual(trace: Trace) -> bool:
    """Returns whether flows have the numbers that an analysis without options gives, as `wiretale cut` does."""
    usual = trace.options._replace(max_flows=NO_OPTIONS.max_flows, jobs=None) == NO_OPTIONS
    return usual and len(trace.flows) <= trace.options.max_flows


def cut_start(trace: Trace, served: bool) -> dict[str, Any]:
    """Returns the first words of a cut of the input, empty if it cannot be read again, and whether flows may be named."""
    words = ["wiretale cut", *page_words(trace._arguments, served)] if all(map(is_lasting, trace.inputs)) else []
    return {"command": " ".join(words), "flows": numbers_are_usual(trace)}


def cut_of_finding(trace: Trace, start: dict[str, Any], number: int, evidence: Evidence) -> str | None:
    """Returns the command that copies the packets of finding `number` of the table, with the words of cut_start(); None if
    it concerns no packets, if the input cannot be read again, or if the analysis gave flows and findings other numbers."""
    if not ((evidence.frames or evidence.flows) and start["command"] and start["flows"]) or trace.interrupted:
        return None
    return f"{start['command']} --finding {number} --around {AROUND} --annotate -o finding-{number}.pcapng"


def again(trace: Trace, served: bool) -> dict[str, str]:
    """Returns command and options of this analysis, from which the page makes the command for a report of one flow."""
    options = trace.options
    words = ["wiretale analyze", *page_words(trace._arguments, served)]
    words += options.choosing_packets(False).words()
    times = {"start": options.start_ns, "end": options.end_ns}
    return {
        "command": " ".join(words),
        "filter": options.filter or "",
        **{name: "" if ns is None else show_time(ns).replace(" ", "T") for name, ns in times.items()},
    }
