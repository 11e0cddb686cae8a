# SPDX-License-Identifier: Apache-2.0
"""Commands in the page, which must work in a shell in the directory of the analysis (or of a capture that was given by its whole
path), whatever the files are called."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from wiretale.analyzer.time import show_time
from wiretale.reports.phrases import file_words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wiretale.analyzer.trace import Trace


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
