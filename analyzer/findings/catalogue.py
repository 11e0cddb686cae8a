# SPDX-License-Identifier: Apache-2.0
"""Every finding there is: its code, the rule that makes it, and the page that `wiretale explain --code` shows.

docs/findings.md is made from it (.ci/make_docs.py). No other part imports it: rules do not need their pages.
"""

from __future__ import annotations

from dataclasses import dataclass

from wiretale.analyzer.errors import UsageError
from wiretale.analyzer.findings.model import Rule


@dataclass(frozen=True)
class Page:
    """One code: what the finding says, how it is computed, what it cannot know."""

    code: str
    title: str
    rule: Rule
    computed: str
    unknown: str
    weakens: str | None = None  # of the capture's own findings: what they make doubtful


def chapters() -> dict[str, tuple[Page, ...]]:
    """All pages, by the chapters of docs/findings.md."""
    from wiretale.analyzer.findings import pages_capture, pages_connection, pages_loss, pages_path, pages_rate

    return {
        "The capture itself": pages_capture.PAGES,
        "Connections": pages_connection.PAGES,
        "Loss, order and copies": pages_loss.PAGES,
        "What set the rate": pages_rate.PAGES,
        "Packets and the path": pages_path.PAGES,
    }


def pages() -> dict[str, Page]:
    """All pages by code."""
    return {page.code: page for chapter in chapters().values() for page in chapter}


def page_of(code: str) -> Page:
    """A page. UsageError for a code that is none."""
    found = pages()
    if code not in found:
        near = " or ".join(name for name in found if code and code.split("-")[0] in name.split("-"))
        meant = f" (did you mean {near}?)" if near else ""
        raise UsageError(f"there is no finding {code!r}{meant}; `wiretale explain --list` lists all")
    return found[code]
