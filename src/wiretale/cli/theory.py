# SPDX-License-Identifier: Apache-2.0
"""Compute the maximum that a link can carry: frames, fragments and link time of each block, blocks and payload bytes per
second. docs/theory.md has the formulas.
"""

from __future__ import annotations

import argparse
import sys

from wiretale.cli.options import add_json, option, print_json, whole_number
from wiretale.version import __version__

USAGE = "wiretale theory --link RATE [options]"
EXAMPLES = """\
wiretale theory --link 1G --mtu 1500
# blocks of an application
wiretale theory --link 100M --mtu 1500 --block 8192
# jumbo frames in a VLAN, IPv6, TCP timestamps
wiretale theory --link 10G --mtu 9000 --framing vlan --ip 6 --tcp-options 12 --json
"""
EXIT_CODES = (0, 2, 4)
FRAMINGS = ("ethernet", "vlan", "qinq", "mpls", "pppoe", "ip")  # as in analyzer/theory.py, not imported for --help
FRAMING_HELP = (
    "link layer: ethernet (default; with preamble, gap and FCS), vlan (802.1Q), qinq (802.1ad), mpls (one label), "
    "pppoe, or ip (none)"
)
TCP_OPTIONS_HELP = "bytes of options in each TCP header; timestamps take 12 (default 0)"


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "--link", "RATE", "rate of the link in bit/s: 100M, 1G, 2.5Gbit", required=True)
    option(parser, "--mtu", "N", "maximum IP packet in bytes (default 1500)", type=whole_number(0), default=1500)
    option(parser, "--block", "SIZE", "block of the application in bytes: 8192, 64KiB")
    protocols = ("tcp", "udp", "both")
    option(parser, "--protocol", "NAME", "tcp, udp or both (default)", choices=protocols, default="both")
    option(parser, "--framing", "NAME", FRAMING_HELP, choices=FRAMINGS, default="ethernet")
    option(parser, "--ip", "VERSION", "4 (default) or 6", type=int, choices=(4, 6), default=4)
    option(parser, "--tcp-options", "N", TCP_OPTIONS_HELP, type=whole_number(0), default=0)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    from wiretale.analyzer import theory
    from wiretale.analyzer.units import parse_rate, parse_size
    from wiretale.reports.export.theory import theory_object

    rate = parse_rate(arguments.link)
    link = theory.Link(rate, arguments.mtu, arguments.framing, arguments.ip, arguments.tcp_options)
    theory.check_link(link)
    block = parse_size(arguments.block) if arguments.block is not None else None
    protocols = ("tcp", "udp") if arguments.protocol == "both" else (arguments.protocol,)
    figures = theory_object(link, protocols, block, __version__)
    if arguments.json:
        print_json(figures)
        return 0
    from wiretale.reports.terminal.theory import print_theory

    print_theory(link, figures, sys.stdout)
    return 0
