# SPDX-License-Identifier: Apache-2.0
"""`wiretale experiment serve`: a page on 127.0.0.1 that starts, stops and compares runs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from wiretale.cli import options, process
from wiretale.cli.options import option

if TYPE_CHECKING:
    from wiretale.cli.parser import Commands

USAGE = "wiretale experiment serve DIR [--port N] [--open]"
DESCRIPTION = """\
Open a page that runs experiments: choose a plan or a test of your own, on this host or over the link of a lab's profile; see
progress and figures grow, stop, and compare with published figures and earlier runs. The page is served on 127.0.0.1 until
Ctrl-C, at an address with a random token, by a process without rights; runs stay in DIR.
"""
EXAMPLES = """\
wiretale experiment serve runs/ --open
# runs over a lab need root, or a kernel that allows user namespaces
sudo wiretale experiment serve runs/
"""


def add_serve(actions: Commands) -> None:
    """Adds the action `serve`."""
    parser = actions.add_parser("serve", help="run experiments from a page", usage=USAGE, description=DESCRIPTION)
    parser.describe(EXAMPLES, (0, 2, 4, 5, 130, 143))
    option(parser, "folder", "DIR", "directory of the runs", type=options.folder)
    text = "port to listen on (default: any free one)"
    option(parser, "--port", "N", text, type=options.port_number, default=0)
    option(parser, "--open", None, "open the page in the browser")
    parser.set_defaults(command=serve)


def serve(arguments: argparse.Namespace) -> int:
    """wiretale experiment serve."""
    from wiretale.reports.html.experiment.console import console_page
    from wiretale.reports.view.apart import Apart, Page
    from wiretale.reports.view.server import Answer
    from wiretale.traffic.console.form import OWN, links, read_form
    from wiretale.traffic.console.runs import Runs, usable
    from wiretale.traffic.experiment.plan import BUILT_IN, plan_text, read_plan

    folder: Path = usable(arguments.folder)
    runs = Runs(folder)
    plans = [(name, read_plan(*plan_text(name)).title) for name in BUILT_IN]
    page = console_page(str(folder), [*plans, (OWN, "A test of your own")], links()).encode()

    answers: dict[str, Answer] = {
        "state": lambda _: runs.state(),
        "figures": lambda query: runs.figures(query.get("run", ""), query.get("with", "").split()),
    }
    actions: dict[str, Answer] = {"start": lambda fields: runs.start(read_form(fields)), "stop": lambda _: runs.stop()}
    pages: dict[str, Page] = {"report": lambda query: runs.report(query.get("run", ""))}
    try:
        with Apart(lambda: page, answers, actions, pages, arguments.port) as server:
            print(server.url, flush=True)
            if arguments.open:
                import webbrowser

                webbrowser.open(server.url)
            server.serve_forever()
    except KeyboardInterrupt:
        return process.interrupted_code() if process.terminated else 0
    finally:
        runs.close()
    return 0
