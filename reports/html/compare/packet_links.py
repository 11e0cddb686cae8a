# SPDX-License-Identifier: Apache-2.0
"""Links from pages about several captures to the packets of one of them: its report, which lies beside the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import NamedTuple
from urllib.parse import quote

from wiretale.reports.html.commands import page_words

ARCHIVES = (".gz", ".zst", ".lz4", ".xz", ".bz2")


class CaptureReport(NamedTuple):
    """The report of a capture: its name, and the command that makes it."""

    name: str
    command: str

    def link(self, **choice: object) -> str:
        """Returns the address of a choice in the report.

        >>> CaptureReport("a b.html", "").link(frame=6)
        'a%20b.html#frame=6'
        """
        return f"{quote(self.name)}#{'&'.join(f'{key}={value}' for key, value in choice.items())}"


def report_of(files: Sequence[str]) -> CaptureReport | None:
    """Returns the report of a capture in one file; None if there are several, whose frames would have the same numbers.

    >>> report_of(["/home/me/a b.pcap.gz"])
    CaptureReport(name='a b.html', command="wiretale analyze 'a b.pcap.gz' -o 'a b.html'")
    """
    if len(files) != 1 or files[0] == "-":
        return None
    file = PurePath(files[0])
    stem = PurePath(file.stem).stem if file.suffix in ARCHIVES else file.stem
    name = f"{stem}.html"
    capture_word, report_word = page_words([files[0], name], served=False)
    return CaptureReport(name, f"wiretale analyze {capture_word} -o {report_word}")
