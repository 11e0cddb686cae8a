# SPDX-License-Identifier: Apache-2.0
"""The report of scenarios that were run in a lab: one HTML file that works offline, as the report of a capture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wiretale.reports.html import offline_page
from wiretale.reports.html.lab_figures import lab_figure
from wiretale.reports.terminal.lab import FIGURES, shown

if TYPE_CHECKING:
    from wiretale.traffic.lab.flow import FlowMeasures


def page_row(row: dict[str, Any]) -> dict[str, Any]:
    """A row as the page shows it."""
    published = row["published"]
    return {
        "case": row["case"],
        "description": f"{row['profile']}: {row['protocol'].upper()}, IP packets of {row['packet_bytes']} bytes.",
        "cells": [
            (shown(row[measured], decimals), shown(published.get(figure), decimals))
            for _, measured, figure, decimals in FIGURES
        ],
        "differs": ", ".join(name for name, near in row["as_published"].items() if not near),
        "problems": row.get("disturbances", []),
    }


def render(title: str, rows: Sequence[dict[str, Any]], measures: Sequence[FlowMeasures]) -> str:
    """The page."""
    figures = [lab_figure(measured.bins, row["published"]) for row, measured in zip(rows, measures, strict=True)]
    return offline_page.render(
        "lab.html",
        {"figures": {f"plot-{number}": figure for number, figure in enumerate(figures)}},
        title=title,
        headings=[heading for heading, *_ in FIGURES],
        rows=[page_row(row) for row in rows],
    )


def write_lab_report(title: str, rows: Sequence[dict[str, Any]], measures: Sequence[FlowMeasures], path: Path) -> Path:
    """Writes the page and returns its path. OutputError, with what was there before unharmed, when it cannot."""
    return offline_page.write(render(title, rows, measures), path)
