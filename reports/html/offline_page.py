# SPDX-License-Identifier: Apache-2.0
"""The frame of every page: one HTML file that works offline, with Plotly and its data inside.

The security policy lists each script by its hash: text from a capture must never run.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from wiretale.analyzer.printable import valid_text
from wiretale.reports.export.destination import output_file
from wiretale.reports.html.modules import PAGE, script
from wiretale.version import __version__

BACKTICKS = re.compile("`([^`]+)`")


def part(name: str) -> str:
    """Returns the text of a file of page/."""
    return PAGE.joinpath(name).read_text("utf-8")


def source_hash(script: bytes) -> str:
    """Returns the source of an inline script for the security policy."""
    return "'sha256-" + base64.b64encode(hashlib.sha256(script).digest()).decode() + "'"


def with_code(text: str) -> Any:
    """Returns the text as HTML, with what is between backticks as code."""
    from markupsafe import Markup, escape

    return Markup(BACKTICKS.sub(r"<code>\1</code>", str(escape(text))))


@cache
def templates() -> Any:
    """Returns the environment of the templates, which compiles each of them once."""
    from jinja2 import Environment, FunctionLoader

    environment = Environment(autoescape=True, loader=FunctionLoader(part))
    environment.filters["code"] = with_code
    return environment


@cache
def plotly() -> tuple[str, str]:
    """Returns Plotly as the page holds it, and its source for the security policy."""
    compressed = PAGE.joinpath("plotly-cartesian.min.js.gz").read_bytes()
    return base64.b64encode(compressed).decode(), source_hash(gzip.decompress(compressed))


def render(template: str, data: dict[str, Any], entry: str = "figures.js", style: str = "", **fields: Any) -> str:
    """Returns the page of a template that extends page.html.

    `data` is for the script, which is joined from the module `entry` and those that it imports; the default one draws
    `data["figures"]`, by the id of an element. `fields` are for the template.
    """
    code = script(entry)
    library, library_hash = plotly()
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    frame = templates().get_template(template)
    page = frame.render(
        version=__version__,
        hashes=f"{source_hash(code.encode())} {library_hash}",
        style=part("page.css") + style,
        script=code,
        plotly=library,
        licenses=part("plotly-LICENSE.txt"),
        # "<" could end the script element; in JSON, it occurs only in strings.
        data=text.replace("<", "\\u003c"),
        **fields,
    )
    return valid_text(page)  # the name of a file in the title may not be UTF-8


def write(page: str, path: Path) -> Path:
    """Writes the page and returns its path. OutputError if it cannot be written; an existing file is then unchanged."""
    with output_file(path) as out:
        out.write(page.encode())
    return path
