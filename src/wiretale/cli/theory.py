# SPDX-License-Identifier: Apache-2.0
"""wiretale theory: what a link can carry at most, by arithmetic alone."""

from __future__ import annotations

import argparse
import json
import sys

from wiretale.cli.help_text import HelpText
from wiretale.version import __version__

EXAMPLES = """\
examples:
  wiretale theory --link 1G --mtu 1500
  wiretale theory --link 100M --mtu 1500 --block 8192
  wiretale theory --link 10G --mtu 9000 --framing vlan --ip 6 --tcp-options 12 --json | jq .tcp

How many frames and fragments a block takes, how many bytes of the link's time, and how many blocks and payload bytes
a second the link can carry. docs/theory.md says how each figure is computed.
"""
EXIT_CODES = "exit codes: 0 done, 2 wrong usage"
FRAMINGS = ("ethernet", "vlan", "qinq", "mpls", "pppoe", "ip")  # analyzer/theory.py; not imported for --help


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command and its options."""
    parser = commands.add_parser(
        "theory",
        usage="wiretale theory --link RATE [options]",
        description=EXAMPLES,
        epilog=EXIT_CODES,
        formatter_class=HelpText,
    )
    parser.add_argument("--link", required=True, metavar="RATE", help="rate of the link: 100M, 1G, 2.5Gbit (bit/s)")
    parser.add_argument("--mtu", type=int, default=1500, metavar="N", help="longest IP packet in bytes (default 1500)")
    parser.add_argument("--block", metavar="N", help="size of an application's block in bytes: 8192, 64KiB")
    parser.add_argument("--protocol", choices=("tcp", "udp", "both"), default="both", help="default both")
    parser.add_argument(
        "--framing",
        choices=FRAMINGS,
        default="ethernet",
        help="what the link puts around a packet: Ethernet with preamble, gap and FCS (default), with 802.1Q, with "
        "802.1ad, with an MPLS label, with PPPoE; ip: nothing",
    )
    parser.add_argument("--ip", type=int, choices=(4, 6), default=4, help="IP version (default 4)")
    parser.add_argument(
        "--tcp-options",
        type=int,
        default=0,
        metavar="N",
        help="bytes of options in each TCP header; timestamps take 12 (default 0)",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.set_defaults(command=show_theory)


def show_theory(arguments: argparse.Namespace) -> int:
    """Runs the command."""
    from wiretale.analyzer import theory
    from wiretale.analyzer.rate_parse import parse_rate, parse_size
    from wiretale.reports.theory_json import theory_object

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
    from wiretale.reports.theory_text import print_theory

    print_theory(link, told, sys.stdout)
    return 0
