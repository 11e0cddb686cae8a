# SPDX-License-Identifier: Apache-2.0
"""Makes docs/findings.md from the catalogue in the code: python docs/make_findings.py [--check]."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import made_page

from wiretale.analyzer.catalogue import Page, chapters

PAGE = Path(__file__).with_name("findings.md")

HEAD = """\
# Findings

Made from the code by `python docs/make_findings.py`; `make lint` checks that it is up to date. `wiretale explain --code
CODE` shows one page, `wiretale explain --list` all codes.

A finding has a code, a severity, a scope, a sentence with figures, a cost with its unit, evidence (frames, spans), advice
and a Wireshark display filter. Errors come first, then warnings, then what is only worth knowing; within those the
capture's own, then what costs the largest part of the traffic. A healthy capture gives no warning. Rules about transfers
look at the 50 largest flows, those about what TCP waited for also at the 500 smaller ones that waited the longest (`wiretale
explain` says how many are left out); counts are of all.
"""


def describe_page(page: Page) -> str:
    """A code's section."""
    parts = [f"### {page.code}", f"**{page.title}.** {page.computed}", f"*What it cannot know:* {page.unknown}"]
    if page.weakens:
        parts.append(f"*What it makes doubtful:* {page.weakens}")
    return "\n\n".join([*parts, ""])


def describe_chapter(title: str, pages: Sequence[Page]) -> str:
    """A heading and its sections."""
    return "\n".join([f"## {title}", "", *map(describe_page, pages)])


def make_page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(describe_chapter(*chapter) for chapter in chapters().items())])


if __name__ == "__main__":
    sys.exit(made_page.main(PAGE, make_page()))
