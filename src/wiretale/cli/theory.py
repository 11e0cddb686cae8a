# SPDX-License-Identifier: Apache-2.0
"""wiretale theory: what a link can carry at most, by arithmetic alone."""

from __future__ import annotations

import argparse
import json
import sys

from wiretale.cli.parser import exit_codes
from wiretale.cli.whole_number import whole_number
from wiretale.version import __version__

TYPE_CHECKING = False  # as typing has it, whose import takes 2 ms
if TYPE_CHECKING:
    from wiretale.cli.parser import Commands

DESCRIPTION = """\
Compute the maximum that a link can carry: frames, fragments and link time of each block, blocks and payload bytes per
second. docs/theory.md has the formulas.
"""
EXAMPLES = """\
wiretale theory --link 1G --mtu 1500
# blocks of an application
wiretale theory --link 100M --mtu 1500 --block 8192
# jumbo frames in a VLAN, IPv6, TCP timestamps
wiretale theory --link 10G --mtu 9000 --framing vlan --ip 6 --tcp-options 12 --json
"""
FRAMINGS = ("ethernet", "vlan", "qinq", "mpls", "pppoe", "ip")  # analyzer/theory.py; not imported for --help


def add_command(commands: Commands) -> None:
    """The command and its options."""
    parser = commands.add_parser("theory", usage="wiretale theory --link RATE [options]", description=DESCRIPTION)
    parser.examples, parser.exit_codes = EXAMPLES, exit_codes(0, 2, 4)
    parser.add_argument("--link", required=True, metavar="RATE", help="rate of the link in bit/s: 100M, 1G, 2.5Gbit")
    parser.add_argument(
        "--mtu", type=whole_number(0), default=1500, metavar="N", help="maximum IP packet in bytes (default 1500)"
    )
    parser.add_argument("--block", metavar="SIZE", help="block of the application in bytes: 8192, 64KiB")
    parser.add_argument(
        "--protocol", choices=("tcp", "udp", "both"), default="both", metavar="NAME", help="tcp, udp or both (default)"
    )
    parser.add_argument(
        "--framing",
        choices=FRAMINGS,
        default="ethernet",
        metavar="NAME",
        help="link layer: ethernet (default; with preamble, gap and FCS), vlan (802.1Q), qinq (802.1ad), mpls (one label), "
        "pppoe, or ip (none)",
    )
    parser.add_argument("--ip", type=int, choices=(4, 6), default=4, metavar="VERSION", help="4 (default) or 6")
    parser.add_argument(
        "--tcp-options",
        type=whole_number(0),
        default=0,
        metavar="N",
        help="bytes of options in each TCP header; timestamps take 12 (default 0)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(command=show_theory)


def show_theory(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    from wiretale.analyzer import theory
    from wiretale.analyzer.units import parse_rate, parse_size
    from wiretale.reports.export.theory import theory_object

    link = theory.Link(
        *(parse_rate(arguments.link), arguments.mtu, arguments.framing, arguments.ip, arguments.tcp_options)
    )
    theory.check_link(link)
    block = parse_size(arguments.block) if arguments.block is not None else None
    protocols = ("tcp", "udp") if arguments.protocol == "both" else (arguments.protocol,)
    told = theory_object(link, protocols, block, __version__)
    if arguments.json:
        print(json.dumps(told))
        return 0
    from wiretale.reports.terminal.theory import print_theory

    print_theory(link, told, sys.stdout)
    return 0
