# SPDX-License-Identifier: Apache-2.0
"""The commands, as data: the first help lists COMMANDS, then MORE. The parser, man pages and completions are made from them."""

from __future__ import annotations

# What a person needs; each command has a module of its name in this package, except for the C programs.
COMMANDS = {
    "analyze": "what went wrong or took the time, and why; the default",
    "view": "the same as an interactive page, with every packet in reach",
    "compare": "the same traffic at two or three points: who lost or delayed what",
    "diff": "two runs: what changed",
    "cut": "copy chosen packets, annotated or anonymized",
    "capture": "record from an interface; every drop is counted",
    "send": "send numbered blocks to a receiver",
    "receive": "receive them; count what is lost, late or damaged",
}
MORE = {
    "find": "extract one host, port or time from a folder of captures, by an index",
    "traffic": "classic ttcp, an emulated link, the way to a host (ttcp, link, path)",
    "lab": "an emulated network on this machine, with a log of each packet",
    "experiment": "run a plan of tests, also from a page, report on it, model a capture (run, serve, report, model)",
    "store": "keep the analyses of many captures and query them (add, query, watch)",
    "verify": "compare every verdict with Wireshark's",
    "status": "ask a running capture for counts, metrics for Prometheus, a health check",
    "theory": "the most a link can carry",
    "mcp": "captures for agents, over the Model Context Protocol",
    "info": "what a file is: format, interfaces, times, drop counts",
    "doctor": "what is missing on this machine",
}
# Commands within a group that have modules or programs of their own. Their names alone work, too, for one release.
ACTIONS = {
    "traffic": {
        "ttcp": "a transfer with classic ttcp",
        "link": "emulate a lossy, slow or reordering link between two interfaces",
        "path": "the routers on the way to a host, without privileges",
    },
    "experiment": {"model": "turn flows of a capture into a plan, and test whether its flows agree"},
    "store": {"watch": "analyze the files of a capture as they are finished, into a store"},
}
PATHS = {action: f"{group} {action}" for group, actions in ACTIONS.items() for action in actions}
KNOWN = (*COMMANDS, *MORE, "explain", *PATHS)
PROGRAM_COMMANDS = ("send", "receive", "ttcp", "path", "capture", "find", "status", "link")  # run by C programs
# Groups without a module: description, and examples.
GROUPS = {
    "traffic": (
        "Exchange data with classic ttcp, emulate a link with loss, delay and a rate, and list the routers on the way to a host.",
        "wiretale traffic ttcp -t -s 192.0.2.2\nwiretale traffic path 192.0.2.2\nwiretale traffic link --help\n",
    ),
}


def path_of(name: str) -> str:
    """Returns a command as a user types it: `store watch`."""
    return PATHS.get(name, name)


def routed(arguments: list[str]) -> list[str]:
    """Returns the arguments with the name of a command alone instead of its group and name."""
    group, *words = arguments or [""]
    if words and (words[0] in ACTIONS.get(group, ()) or (group == "traffic" and words[0] in PROGRAM_COMMANDS)):
        return words
    return arguments
