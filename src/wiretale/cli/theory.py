# SPDX-License-Identifier: Apache-2.0
"""Compute the maximum that a link can carry: frames, fragments and link time of each block, blocks and payload bytes per
second; with --rtt, what a window and losses permit. docs/theory.md has the formulas.
"""

from __future__ import annotations

import argparse
import sys

from wiretale.cli.options import add_json, option, print_json, whole_number
from wiretale.version import __version__

USAGE = "wiretale theory RATE [options]"
EXAMPLES = """\
wiretale theory 1G
# one connection over a long path
wiretale theory 1G --rtt 20ms --window 64KiB --loss 0.1%
# blocks of an application
wiretale theory 100M --block 8192
# what 802.11g carries
wiretale theory 54M --framing wlan
# jumbo frames in a VLAN, IPv6, TCP timestamps
wiretale theory 10G --mtu 9000 --framing vlan --ip 6 --tcp-options 12 --json
"""
EXIT_CODES = (0, 2, 4)
FRAMINGS = (  # as in analyzer/theory/capacity.py, not imported for --help
    "ethernet",
    "vlan",
    "qinq",
    "mpls",
    "pppoe",
    "ip",
    "wlan",
    "wlan-protected",
)
FRAMING_HELP = (
    "link layer: ethernet (default; with preamble, gap and FCS), vlan (802.1Q), qinq (802.1ad), mpls (one label), "
    "pppoe, ip (none), wlan (802.11a, b, g; one sender), or wlan-protected (beside 802.11b)"
)
TCP_OPTIONS_HELP = "bytes of options in each TCP header; timestamps take 12 (default: 0)"


def round_trip(text: str) -> float:
    """Returns seconds, from `20ms`."""
    from wiretale.analyzer.units import parse_duration

    ns = parse_duration(text)
    if not ns or not text.strip()[-1:].isalpha():
        raise argparse.ArgumentTypeError(f"{text!r}: expected a time such as 20ms or 0.3s")
    return ns / 1e9


def share(text: str) -> float:
    """Returns a share, from `0.1%` or `0.001`."""
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = 0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a share such as 0.1% or 0.001")
    return value


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "rate", "RATE", "rate of the link in bit/s: 100M, 1G, 2.5Gbit", nargs="?")
    option(parser, "--link", "RATE", "the same as an option")
    option(parser, "--rtt", "TIME", "round trip of a path: 20ms, 0.3s", type=round_trip)
    option(parser, "--window", "SIZE", "receive window, send buffer or congestion window, with --rtt: 65535, 64KiB")
    option(parser, "--loss", "SHARE", "share of segments that are lost, with --rtt: 0.001, 0.1%", type=share)
    option(parser, "--mtu", "N", "maximum IP packet in bytes (default: 1500)", type=whole_number(0), default=1500)
    option(parser, "--block", "SIZE", "block of the application in bytes: 8192, 64KiB")
    protocols = ("tcp", "udp", "both")
    option(parser, "--protocol", "NAME", "tcp, udp or both (default)", choices=protocols, default="both")
    option(parser, "--framing", "NAME", FRAMING_HELP, choices=FRAMINGS, default="ethernet")
    option(parser, "--ip", "VERSION", "4 (default) or 6", type=int, choices=(4, 6), default=4)
    option(parser, "--tcp-options", "N", TCP_OPTIONS_HELP, type=whole_number(0), default=0)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    from wiretale.analyzer.errors import UsageError
    from wiretale.analyzer.theory import capacity as theory
    from wiretale.analyzer.units import parse_rate, parse_size
    from wiretale.reports.export.theory import theory_object

    rates = [text for text in (arguments.rate, arguments.link) if text is not None]
    if len(rates) != 1:
        raise UsageError("expected RATE, such as 1G; see `wiretale theory --help`")
    if arguments.rtt is None and (arguments.window or arguments.loss):
        raise UsageError("--window and --loss need --rtt, the round trip")
    rate = parse_rate(rates[0])
    link = theory.Link(rate, arguments.mtu, arguments.framing, arguments.ip, arguments.tcp_options)
    theory.check_link(link)
    block = parse_size(arguments.block) if arguments.block is not None else None
    protocols = ("tcp", "udp") if arguments.protocol == "both" else (arguments.protocol,)
    window = parse_size(arguments.window) if arguments.window else None
    path = theory.path_bounds(link, arguments.rtt, window, arguments.loss) if arguments.rtt else None
    figures = theory_object(link, protocols, block, __version__, path)
    if arguments.json:
        print_json(figures)
        return 0
    from wiretale.reports.terminal.theory import print_theory

    print_theory(link, figures, sys.stdout)
    return 0
