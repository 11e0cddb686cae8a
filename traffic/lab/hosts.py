# SPDX-License-Identifier: Apache-2.0
"""The hosts of a lab: network namespaces, made and removed.

    sender ── left, tracer, right ── receiver

A tracer has no address: a link connects its two interfaces, and captures are made on them. Hosts have static neighbor
entries and send no packets of their own.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from contextlib import suppress
from pathlib import Path

from wiretale.analyzer.errors import MissingToolError, UsageError, WiretaleError
from wiretale.traffic.lab.process import end_all, last_line, run_program
from wiretale.traffic.lab.state import Lab, TakenError
from wiretale.traffic.program import find_program

ADDRESSES = {"sender": ("10.99.0.1", "fd00:99::1"), "receiver": ("10.99.0.2", "fd00:99::2")}
LINK_ADDRESSES = ("10.99.0.254", "fd00:99::fe")  # the source of ICMP errors
SIDES = {"sender": "left", "receiver": "right"}  # the interface of the tracer on that side
HARDWARE = {"left": "02:00:00:00:99:01", "right": "02:00:00:00:99:02"}  # at both ends of each link
INTERFACE = "path"  # the interface of a host
OFFLOADS = "tso off gso off gro off tx off"  # so that captures have the packets of a wire
CONTROL, TABLE = "control", "99"  # interface and routing table past the link
IPPROTO_TCP = "6"  # a number, because a minimal system has no /etc/protocols
IPV6_LEAST = 1280
# Settings of every interface: no router solicitations, no address detection, no group messages.
QUIET = (
    *("accept_ra=0", "accept_dad=0", "autoconf=0", "router_solicitations=0", "addr_gen_mode=1"),
    # The kernel repeats a membership report within this time in ms, which must exceed the life of the lab: it would cross the
    # link without delay, and so distort the comparison of clocks.
    *("mldv1_unsolicited_report_interval=100000000", "mldv2_unsolicited_report_interval=100000000"),
)
END_SECONDS = 5


def run_ip(lab: Lab, host: str, *words: str) -> None:
    """Runs ip(8) in the network namespace of a host."""
    run_program([find_program("ip"), "-n", lab.namespace(host), *words])


def namespace_exists(lab: Lab, host: str) -> bool:
    """Returns whether a host exists."""
    return Path("/run/netns", lab.namespace(host)).exists()


def quiet_script() -> str:
    """Returns shell commands that silence IPv6 in a namespace."""
    lines = []
    for setting in QUIET:
        name, value = setting.split("=")
        lines += [f"echo {value} > /proc/sys/net/ipv6/conf/{which}/{name}" for which in ("all", "default")]
    return "; ".join(lines) + "; true"


def check_free(lab: Lab) -> None:
    """Raises TakenError if hosts of that name exist, because they belong to another lab."""
    if any(namespace_exists(lab, host) for host in lab.spaces):
        raise TakenError(lab.name)


def make_namespace(lab: Lab, host: str) -> None:
    """Makes a host, with only a loopback interface."""
    try:
        run_program([find_program("ip"), "netns", "add", lab.namespace(host)])
    except WiretaleError as error:
        raise MissingToolError(f"network namespaces cannot be made: {error}") from None
    if Path("/proc/sys/net/ipv6").exists():
        run_program(lab.inside(host, "sh", "-c", f"({quiet_script()}) 2>/dev/null"))
    run_ip(lab, host, "link", "set", "lo", "up")


def connect_host(lab: Lab, host: str, interface: str, tracer: str, side: str, mtu: int) -> None:
    """Connects a host with one side of a tracer."""
    end = ["peer", "name", interface, "netns", lab.namespace(host), "address", HARDWARE[side]]
    run_ip(lab, tracer, "link", "add", side, "type", "veth", *end)
    for where, name in ((tracer, side), (host, interface)):
        run_program(lab.inside(where, find_program("ethtool"), "-K", name, *OFFLOADS.split()))
        run_ip(lab, where, "link", "set", name, "mtu", str(mtu), "up")
    setting = f"/proc/sys/net/ipv6/conf/{side}/disable_ipv6"  # missing if the MTU is small, or without IPv6
    run_program(lab.inside(tracer, "sh", "-c", f"[ ! -e {setting} ] || echo 1 > {setting}"))


def families(mtu: int) -> dict[str, int]:
    """Returns the options of ip(8) for the families that hosts have, with their place in ADDRESSES."""
    return {"-4": 0, **({"-6": 1} if mtu >= IPV6_LEAST and Path("/proc/sys/net/ipv6").exists() else {})}


def add_neighbor(lab: Lab, host: str, address: str, interface: str, side: str) -> None:
    """Gives a host a static neighbor, at that side of a link."""
    there = [address, "lladdr", HARDWARE[side], "dev", interface, "nud", "permanent"]
    run_ip(lab, host, "neigh", "replace", *there)


def address_host(lab: Lab, host: str, mtu: int) -> None:
    """Gives sender or receiver its addresses, a route to the other host, and the neighbor entry of that host."""
    other = next(name for name in ADDRESSES if name != host)
    for family, which in families(mtu).items():
        prefix, nodad = (64, ["nodad"]) if which else (24, [])
        address = f"{ADDRESSES[host][which]}/{prefix}"
        run_ip(lab, host, family, "address", "add", address, "dev", INTERFACE, *nodad)
        run_ip(lab, host, family, "route", "add", "default", "dev", INTERFACE)
        add_neighbor(lab, host, ADDRESSES[other][which], INTERFACE, SIDES[other])


def set_kernel(lab: Lab, host: str, settings: dict[str, str]) -> None:
    """Applies kernel settings to the network namespace of a host."""
    for name, value in settings.items():
        path = "/proc/sys/" + name.replace(".", "/")
        try:
            run_program(lab.inside(host, "sh", "-c", f"echo {shlex.quote(value)} > {shlex.quote(path)}"))
        except WiretaleError as error:
            reason = str(error).rpartition(": ")[2]
            raise UsageError(f"sysctl {name} = {value}: the kernel refuses it on a host of a lab: {reason}") from None


def limit_card(lab: Lab, host: str, speed: str) -> None:
    """Limits the network card of a host: a program that sends faster must wait, as with a real card.

    A frame takes 24 bytes more on the wire than the kernel counts: FCS, preamble, gap.
    """
    shape = ["stab", "overhead", "24", "linklayer", "ethernet", "tbf", "rate", speed, "burst", "3200", "latency", "2s"]
    tc = find_program("tc")
    try:
        run_program(lab.inside(host, tc, "qdisc", "add", "dev", INTERFACE, "root", "handle", "1:", *shape))
    except WiretaleError as error:
        raise MissingToolError(
            f"this kernel has no token bucket (tbf), which `card` in a profile needs: {error}"
        ) from None


def part_tcp(lab: Lab) -> None:
    """Connects sender and receiver directly for TCP: the control connection of a UDP test must not use the link."""
    end = ["peer", "name", CONTROL, "netns", lab.namespace("receiver"), "address", HARDWARE["right"]]
    run_ip(lab, "sender", "link", "add", CONTROL, "address", HARDWARE["left"], "type", "veth", *end)
    for host in ADDRESSES:
        other = next(name for name in ADDRESSES if name != host)
        there = ADDRESSES[other][0]
        run_ip(lab, host, "link", "set", CONTROL, "up")
        run_ip(lab, host, "neigh", "replace", there, "lladdr", HARDWARE[SIDES[other]], "dev", CONTROL)
        run_ip(lab, host, "route", "add", there, "dev", CONTROL, "src", ADDRESSES[host][0], "table", TABLE)
        run_ip(lab, host, "rule", "add", "iif", "lo", "ipproto", IPPROTO_TCP, "lookup", TABLE)  # not of hosts behind it


def processes_in(lab: Lab) -> list[int]:
    """Returns the processes on the hosts."""
    processes: list[int] = []
    for host in lab.spaces:
        if namespace_exists(lab, host):
            command = [find_program("ip"), "netns", "pids", lab.namespace(host)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=30)
            processes += [int(word) for word in done.stdout.split()]
    return [pid for pid in processes if pid != os.getpid()]


def user_of(lab: Lab) -> str:
    """Returns the process that uses a lab, for a message; empty if no process does.

    Only the process of a `lab run` uses its lab. Another lab is used by any process on its hosts except its link.
    """
    if lab.owner:
        return f"process {lab.owner}" if lab.is_in_use else ""
    for pid in processes_in(lab):
        with suppress(OSError):  # the process has ended
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
            name = Path(words[0]).name
            if name and (name, *words[1:3]) != ("wiretale-link", *SIDES.values()):
                return f"process {pid} ({name})"
    return ""


def remove_hosts(lab: Lab) -> None:
    """Ends the processes on the hosts, and removes the hosts with their interfaces. It may be called twice."""
    end_all(lambda: processes_in(lab), END_SECONDS)
    for host in lab.spaces:
        if namespace_exists(lab, host):
            command = [find_program("ip"), "netns", "delete", lab.namespace(host)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=30)
            if done.returncode and namespace_exists(lab, host):
                raise WiretaleError(f"{lab.namespace(host)} cannot be removed: {last_line(done.stderr)}")
