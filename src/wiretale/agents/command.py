# SPDX-License-Identifier: Apache-2.0
"""Serve captures to an agent over the Model Context Protocol (stdio): what went wrong, why, and which frames show it. It reads
only captures in the folders that are named, and changes nothing.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from wiretale.cli.options import folder, option

USAGE = "wiretale mcp DIR..."
EXAMPLES = """\
# for the configuration of an agent: {"command": "wiretale", "args": ["mcp", "/home/me/captures"]}
wiretale mcp captures/
"""
NOTES = """\
Tools: open, answer, causes, evidence, exchanges, flows, query, frame. Each statement has the frames that show it; texts of
packets are marked as data. docs/howto/agents.md says more.
"""
EXIT_CODES = (0, 2, 4, 5, 130, 143)
EXIT_TEXTS = {4: "there is no such folder", 5: "the SDK is missing: pip install mcp"}


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "folders", "DIR", "a folder with captures; others cannot be read", nargs="+", type=folder)


def run(arguments: argparse.Namespace) -> int:
    from wiretale.agents.server import make_server
    from wiretale.analyzer.errors import InputError

    folders: list[Path] = arguments.folders
    for place in folders:
        if not place.is_dir():
            raise InputError(f"{place}: expected a folder with captures")
    make_server(folders).run("stdio")
    return 0
