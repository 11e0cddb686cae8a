# SPDX-License-Identifier: Apache-2.0
"""The report of scenarios that were run in a lab: one HTML file that works offline, as the report of a capture."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wiretale.reports.html import page_text, plotly_script, source_hash
from wiretale.reports.lab_figures import lab_figure
from wiretale.reports.lab_text import FIGURES, shown
from wiretale.reports.output_folder import output_file
from wiretale.version import __version__

if TYPE_CHECKING:
    from wiretale.traffic.lab_flow import FlowMeasures


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
    from jinja2 import Environment

    compressed = plotly_script()
    library, script = gzip.decompress(compressed), page_text("lab_page.js")
    figures = [lab_figure(measured.bins, row["published"]) for row, measured in zip(rows, measures, strict=True)]
    data = json.dumps({"figures": figures, "rows": list(rows)}, separators=(",", ":"), allow_nan=False)
    return (
        Environment(autoescape=True)
        .from_string(page_text("lab_template.html"))
        .render(
            version=__version__,
            title=title,
            headings=[heading for heading, *_ in FIGURES],
            rows=[page_row(row) for row in rows],
            hashes=f"'{source_hash(script.encode())}' '{source_hash(library)}'",
            style=page_text("page.css"),
            script=script,
            plotly=base64.b64encode(compressed).decode(),
            data=data.replace("<", "\\u003c"),
        )
    )


def write_lab_report(title: str, rows: Sequence[dict[str, Any]], measures: Sequence[FlowMeasures], path: Path) -> Path:
    """Writes the page and returns its path. OutputError, with what was there before unharmed, when it cannot."""
    page = render(title, rows, measures)
    with output_file(path) as partial:
        partial.write_text(page, "utf-8")
    return path
