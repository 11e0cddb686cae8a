# SPDX-License-Identifier: Apache-2.0
"""Pictures of a figure: SVG, PNG and PDF, drawn by Chromium with the Plotly.js of the reports, or by kaleido.

Chromium runs without a window and reads one page, which contains the figure and fetches nothing. Plotly.js draws SVG and PNG in
it; a PDF is the SVG, printed on a page of its size.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from wiretale.analyzer.errors import MissingToolError, UsageError, WiretaleError
from wiretale.analyzer.units import one_of, plural
from wiretale.reports.export.destination import output_file
from wiretale.reports.figures.axes import value_ticks
from wiretale.reports.figures.styles import LANE, panel_names
from wiretale.reports.html.figures import PANELS, axis_key
from wiretale.system_packages import install_command

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

FigureChoice = tuple[int, list[str]]  # a flow, and panels; all if there are none
PLACES = ("{flow}", "{panel}")  # in the name of pictures
FORMATS = ("svg", "png", "pdf")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
INSTALL = f"run `{install_command('chromium')}`, or `pip install kaleido` and `plotly_get_chrome`"
WIDTH_PX = 1200
SCALE = 2  # of PNG
SECONDS_MOST = 120
PANEL_OF = {panel.name: panel for panel in PANELS if panel.name != LANE}
FLAGS = ("--headless", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run")

DRAWING = """<!doctype html><meta charset="utf-8"><body><div id="plot"></div><script>{plotly}</script><script>
const figure = {figure};
const done = (text) => {{ document.body.textContent = text; }};
Plotly.newPlot("plot", figure.data, figure.layout, {{ staticPlot: true }})
  .then((plot) => Plotly.toImage(plot, {{ format: "{format}", width: {width}, height: {height}, scale: {scale} }}))
  .then(done, (error) => done(`error: ${{error}}`));
</script>"""
PRINTED = """<!doctype html><meta charset="utf-8"><style>@page {{ size: {width}px {height}px; margin: 0 }}
body {{ margin: 0 }} svg {{ display: block }}</style>{svg}"""


def format_of(path: Path) -> str:
    """Returns the format of a picture by its suffix. UsageError if it is another one."""
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in FORMATS:
        raise UsageError(f"{path}: expected a picture that ends in {one_of([f'.{name}' for name in FORMATS])}")
    return suffix


def named_pictures(figures: Sequence[FigureChoice], outputs: Sequence[Path]) -> list[Path]:
    """Returns the file of each figure: one each in their order, or one name with {flow} and {panel} for all of them."""
    if not outputs:
        raise UsageError("--figure needs -o FILE, a picture that ends in .svg, .png or .pdf")
    if len(outputs) == 1 and any(place in str(outputs[0]) for place in PLACES):
        flow, panel = PLACES
        named = [
            Path(str(outputs[0]).replace(flow, str(number)).replace(panel, "-".join(panels) or "all"))
            for number, panels in figures
        ]
    else:
        named = list(outputs)
    if len(named) != len(figures):
        raise UsageError(
            f"{plural(len(figures), 'figure')} and {plural(len(named), 'picture')}: give one -o FILE for each --figure, or one "
            "-o for all of them, such as 'flow-{flow}-{panel}.svg'"
        )
    return named


def check_pictures(figures: Sequence[FigureChoice], outputs: Sequence[Path]) -> list[Path]:
    """Returns the file of each figure, before the analysis.

    UsageError if a file is no picture, two figures have one file, or a panel does not exist. MissingToolError if none draws it.
    """
    from importlib.util import find_spec

    for _, panels in figures:
        panel_names(panels)
    paths = named_pictures(figures, outputs)
    for number, path in enumerate(paths):
        format_of(path)
        if path in paths[:number]:
            raise UsageError(f"{path}: two figures cannot be one file")
    if find_browser() is None and find_spec("kaleido") is None:
        raise MissingToolError(f"a picture needs a browser: {INSTALL}")
    return paths


def find_browser() -> str | None:
    """Returns the path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def run_browser(browser: str, folder: str, page: str, *options: str) -> str:
    """Opens a page and returns the output of the browser. Raises WiretaleError if it fails."""
    file = Path(folder, "page.html")
    file.write_text(page, "utf-8")
    # Chromium refuses its sandbox to root. The page contains only wiretale's figure, whose texts are JSON.
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    command = [browser, *FLAGS, *root, f"--user-data-dir={folder}/profile", *options, file.as_uri()]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS_MOST)
    except subprocess.TimeoutExpired:
        raise WiretaleError(f"{browser} drew no picture within {SECONDS_MOST} s") from None
    except OSError as error:
        raise MissingToolError(f"{browser} cannot be run ({error.strerror}): {INSTALL}") from None
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise WiretaleError(f"{browser} failed: {lines[-1] if lines else f'exit code {done.returncode}'}")
    return done.stdout.decode("utf-8", "replace")


def drawn(browser: str, folder: str, figure: Figure, form: str) -> bytes:
    """Returns the figure as SVG or PNG."""
    from wiretale.reports.html.modules import PAGE

    plotly = gzip.decompress(PAGE.joinpath("plotly-cartesian.min.js.gz").read_bytes()).decode()
    page = DRAWING.format(
        plotly=plotly,
        figure=figure.to_json().replace("<", "\\u003c"),
        format=form,
        width=WIDTH_PX,
        height=int(figure.layout.height),
        scale=SCALE if form == "png" else 1,
    )
    text = run_browser(browser, folder, page, "--virtual-time-budget=60000", "--dump-dom")
    matched = re.search(r"data:image/[a-z+]+(?:;base64)?,[^<\s]+", text)
    if not matched:
        problem = re.search(r"error: [^<]*", text)
        raise WiretaleError(f"{browser} drew no picture{f': {problem[0]}' if problem else ''}")
    head, _, content = matched[0].partition(",")
    return base64.b64decode(content) if head.endswith("base64") else unquote_to_bytes(content.replace("&amp;", "&"))


def printed(browser: str, folder: str, figure: Figure) -> bytes:
    """Returns the figure as PDF."""
    svg = drawn(browser, folder, figure, "svg").decode()
    page = PRINTED.format(width=WIDTH_PX, height=int(figure.layout.height), svg=svg)
    file = Path(folder, "picture.pdf")
    run_browser(browser, folder, page, "--no-pdf-header-footer", f"--print-to-pdf={file}")
    return file.read_bytes()


def by_kaleido(figure: Figure, form: str) -> bytes:
    """Returns the figure drawn by kaleido. Raises MissingToolError if it is not installed or finds no browser."""
    try:
        import kaleido
    except ImportError:
        raise MissingToolError(f"a picture needs a browser: {INSTALL}") from None
    options = {
        "format": form,
        "width": WIDTH_PX,
        "height": int(figure.layout.height),
        "scale": SCALE if form == "png" else 1,
    }
    try:
        return bytes(kaleido.calc_fig_sync(json.loads(figure.to_json()), opts=options))
    except Exception as error:  # those of kaleido and its browser have no common class
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise MissingToolError(f"kaleido drew no picture ({reason}): {INSTALL}") from None


def with_ticks(figure: Figure) -> Figure:
    """Returns the figure of a flow with round ticks in the unit that the head of each panel names: nobody zooms a picture."""
    from plotly import graph_objects as go

    still, names = go.Figure(figure), (figure.layout.meta or {}).get("panels", ())
    for number, name in enumerate(names, start=1):
        if (panel := PANEL_OF.get(name)) is None:
            continue
        key = axis_key(number).replace("y", "yaxis")
        ticks, texts, unit = value_ticks(panel, still.layout[key].range)
        still.layout[key].update(tickvals=ticks, ticktext=texts, ticksuffix="")
        still.update_annotations({"text": f"<b>{panel.title}</b> {unit}"}, selector={"name": key})
    return still


def picture(figure: Figure, form: str) -> bytes:
    """Returns a picture of the figure in one of FORMATS. Raises MissingToolError if no program can draw it."""
    browser, figure = find_browser(), with_ticks(figure)
    if browser is None:
        return by_kaleido(figure, form)
    with TemporaryDirectory(prefix="wiretale-", ignore_cleanup_errors=True) as folder:
        return printed(browser, folder, figure) if form == "pdf" else drawn(browser, folder, figure, form)


def write_picture(figure: Figure, path: Path) -> Path:
    """Writes a picture in the format of its suffix. OutputError if it cannot be written; an existing file is then unchanged."""
    content = picture(figure, format_of(path))
    with output_file(path) as out:
        out.write(content)
    return path
