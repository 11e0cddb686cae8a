# SPDX-License-Identifier: Apache-2.0
"""What every page of a report is built on: one HTML file that works offline, with Plotly and its data inside.

The security policy names each script by its hash, so that nothing else runs, whatever a capture's strings hold.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from wiretale.analyzer.printable import valid_text
from wiretale.reports.export.destination import output_file
from wiretale.version import __version__

PARTS = files("wiretale.reports.html").joinpath("page")
FIRST_SCRIPTS = ("plotly.js", "keys.js", "print.js")


def part(name: str) -> str:
    """A part of a page."""
    return PARTS.joinpath(name).read_text("utf-8")


def source_hash(script: bytes) -> str:
    """How the page's security policy names an inline script."""
    return "'sha256-" + base64.b64encode(hashlib.sha256(script).digest()).decode() + "'"


def render(
    template: str, data: dict[str, Any], scripts: Sequence[str] = ("figures.js",), style: str = "", **shown: Any
) -> str:
    """The page of a template that extends page.html. `data` is for the scripts, which come behind those of every page
    and by themselves draw `data["figures"]` (by the id of their place); `shown` is for the template."""
    from jinja2 import Environment, FunctionLoader

    compressed = PARTS.joinpath("plotly-cartesian.min.js.gz").read_bytes()
    code = "\n".join(map(part, (*FIRST_SCRIPTS, *scripts)))
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    page = (
        Environment(autoescape=True, loader=FunctionLoader(part))
        .get_template(template)
        .render(
            version=__version__,
            hashes=f"{source_hash(code.encode())} {source_hash(gzip.decompress(compressed))}",
            style=part("page.css") + style,
            script=code,
            plotly=base64.b64encode(compressed).decode(),
            # "<" could end the element that holds it; in JSON it only stands in strings.
            data=text.replace("<", "\\u003c"),
            **shown,
        )
    )
    return valid_text(page)  # a title may be the name of a file that is not UTF-8


def write(page: str, path: Path) -> Path:
    """Writes the page and returns its path. OutputError, with what was there before unharmed, when it cannot."""
    with output_file(path) as out:
        out.write(page.encode())
    return path
