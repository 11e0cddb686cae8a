# SPDX-License-Identifier: Apache-2.0
"""The hosts of a lab: creates and removes three network namespaces in a row.

    sender ── left, tracer, right ── receiver

The tracer has no address: the link connects its two interfaces like a cable, and captures are made on them. Hosts have
static neighbor entries and send no packets of their own.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from wiretale.analyzer.errors import MissingToolError, UsageError, WiretaleError
from wiretale.traffic.lab.profile import Profile
from wiretale.traffic.lab.program import last_line, run_program
from wiretale.traffic.lab.state import HOSTS, Lab, TakenError
from wiretale.traffic.program import find_program

ADDRESSES = {"sender": ("10.99.0.1", "fd00:99::1"), "receiver": ("10.99.0.2", "fd00:99::2")}
LINK_ADDRESSES = ("10.99.0.254", "fd00:99::fe")  # source of ICMP errors
HARDWARE = {"sender": "02:00:00:00:99:01", "receiver": "02:00:00:00:99:02"}
SIDES = {"sender": "left", "receiver": "right"}  # the tracer's interface for each host
INTERFACE = "path"  # name of a host's interface
OFFLOADS = "tso off gso off gro off tx off"  # so that captured packets have wire size
CONTROL, TABLE = "control", "99"  # interface and routing table that bypass the link
IPPROTO_TCP = "6"  # as a number, because a bare system has no /etc/protocols
IPV6_LEAST = 1280
# For every interface: no router solicitation, no duplicate address detection, no multicast membership reports.
QUIET = (
    *("accept_ra=0", "accept_dad=0", "autoconf=0", "router_solicitations=0", "addr_gen_mode=1"),
    # The kernel sends a membership report at once and again within this time in ms, so it must exceed the lab's life. A
    # report would pass the link without delay and distort clock estimates.
    *("mldv1_unsolicited_report_interval=100000000", "mldv2_unsolicited_report_interval=100000000"),
)
END_SECONDS = 5


def namespace_exists(lab: Lab, host: str) -> bool:
    """Returns whether the network namespace exists."""
    return Path("/run/netns", lab.namespace(host)).exists()


def quiet_script() -> str:
    """Returns shell commands that apply QUIET to a namespace."""
    lines = []
    for setting in QUIET:
        name, value = setting.split("=")
        lines += [f"echo {value} > /proc/sys/net/ipv6/conf/{which}/{name}" for which in ("all", "default")]
    return "; ".join(lines) + "; true"


def check_free(lab: Lab) -> None:
    """Raises TakenError if hosts of that name exist, because they belong to another lab."""
    if any(namespace_exists(lab, host) for host in HOSTS):
        raise TakenError(lab.name)


def make_namespace(lab: Lab, host: str) -> None:
    """Makes a network namespace with only a loopback interface."""
    ip = find_program("ip")
    try:
        run_program([ip, "netns", "add", lab.namespace(host)])
    except WiretaleError as error:
        raise MissingToolError(f"network namespaces cannot be made here: {error}") from None
    if Path("/proc/sys/net/ipv6").exists():
        run_program(lab.inside(host, "sh", "-c", f"({quiet_script()}) 2>/dev/null"))
    run_program([ip, "-n", lab.namespace(host), "link", "set", "lo", "up"])


def connect_host(lab: Lab, host: str, mtu: int) -> None:
    """Connects a host with the tracer."""
    ip, side = find_program("ip"), SIDES[host]
    tracer, own = lab.namespace("tracer"), lab.namespace(host)
    end = ["peer", "name", INTERFACE, "netns", own, "address", HARDWARE[host]]
    run_program([ip, "-n", tracer, "link", "add", side, "type", "veth", *end])
    for namespace, where, interface in ((tracer, "tracer", side), (own, host, INTERFACE)):
        run_program(lab.inside(where, find_program("ethtool"), "-K", interface, *OFFLOADS.split()))
        run_program([ip, "-n", namespace, "link", "set", interface, "mtu", str(mtu), "up"])
    setting = f"/proc/sys/net/ipv6/conf/{side}/disable_ipv6"  # missing if the MTU is small or the kernel has no IPv6
    run_program(lab.inside("tracer", "sh", "-c", f"[ ! -e {setting} ] || echo 1 > {setting}"))


def address_host(lab: Lab, host: str, mtu: int) -> None:
    """Configures a host's addresses, route and static neighbor entry."""
    ip, own = find_program("ip"), lab.namespace(host)
    other = next(name for name in ADDRESSES if name != host)
    families = [("-4", 0, "24")]
    if mtu >= IPV6_LEAST and Path("/proc/sys/net/ipv6").exists():
        families.append(("-6", 1, "64"))
    for family, which, prefix in families:
        nodad = ["nodad"] if which else []
        address = f"{ADDRESSES[host][which]}/{prefix}"
        run_program([ip, family, "-n", own, "address", "add", address, "dev", INTERFACE, *nodad])
        run_program([ip, family, "-n", own, "route", "add", "default", "dev", INTERFACE])
        there = [ADDRESSES[other][which], "lladdr", HARDWARE[other], "dev", INTERFACE, "nud", "permanent"]
        run_program([ip, family, "-n", own, "neigh", "replace", *there])


def set_kernel(lab: Lab, host: str, settings: dict[str, str]) -> None:
    """Sets sysctls of a host's network namespace."""
    for name, value in settings.items():
        path = "/proc/sys/" + name.replace(".", "/")
        try:
            run_program(lab.inside(host, "sh", "-c", f"echo {shlex.quote(value)} > {shlex.quote(path)}"))
        except WiretaleError as error:
            why = str(error).rpartition(": ")[2]
            raise UsageError(
                f"sysctl {name} = {value}: this kernel does not take it on a host of a lab: {why}"
            ) from None


def limit_card(lab: Lab, host: str, speed: str) -> None:
    """Limits an interface to a card's speed (tbf), so that a faster sender is blocked as by a real card.

    On the wire a frame has 24 bytes more than the kernel counts: FCS, preamble, inter-frame gap.
    """
    shape = ["stab", "overhead", "24", "linklayer", "ethernet", "tbf", "rate", speed, "burst", "3200", "latency", "2s"]
    tc = find_program("tc")
    try:
        run_program(lab.inside(host, tc, "qdisc", "add", "dev", INTERFACE, "root", "handle", "1:", *shape))
    except WiretaleError as error:
        raise MissingToolError(
            f"this kernel has no token bucket (tbf), which `card` in a profile needs: {error}"
        ) from None


def make_hosts(lab: Lab, profile: Profile) -> None:
    """Makes all hosts and connects them through the tracer's two interfaces."""
    for host in HOSTS:
        make_namespace(lab, host)
    for host in ADDRESSES:
        connect_host(lab, host, profile.mtu)
    for host in ADDRESSES:
        address_host(lab, host, profile.mtu)
        set_kernel(lab, host, profile.sysctl)
        if profile.card:
            limit_card(lab, host, profile.card)


def part_tcp(lab: Lab) -> None:
    """Connects the ends directly for TCP, so that the control connection of a UDP test bypasses the link."""
    ip = find_program("ip")
    sender, receiver = lab.namespace("sender"), lab.namespace("receiver")
    end = ["peer", "name", CONTROL, "netns", receiver, "address", HARDWARE["receiver"]]
    run_program([ip, "-n", sender, "link", "add", CONTROL, "address", HARDWARE["sender"], "type", "veth", *end])
    for host in ADDRESSES:
        own, other = lab.namespace(host), next(name for name in ADDRESSES if name != host)
        there = ADDRESSES[other][0]
        run_program([ip, "-n", own, "link", "set", CONTROL, "up"])
        run_program([ip, "-n", own, "neigh", "replace", there, "lladdr", HARDWARE[other], "dev", CONTROL])
        route = [there, "dev", CONTROL, "src", ADDRESSES[host][0], "table", TABLE]
        run_program([ip, "-n", own, "route", "add", *route])
        run_program([ip, "-n", own, "rule", "add", "ipproto", IPPROTO_TCP, "lookup", TABLE])


def processes_in(lab: Lab) -> list[int]:
    """Returns the processes on the hosts."""
    found: list[int] = []
    for host in HOSTS:
        if namespace_exists(lab, host):
            command = [find_program("ip"), "netns", "pids", lab.namespace(host)]
            said = subprocess.run(command, capture_output=True, text=True, timeout=30)
            found += [int(word) for word in said.stdout.split()]
    return [pid for pid in found if pid != os.getpid()]


def words_of(pid: int) -> list[str]:
    """Returns the command line of a process; empty if it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    return []


def is_own_link(words: list[str]) -> bool:
    """Returns whether the process is a lab's link between the tracer's interfaces."""
    return Path(words[0]).name == "wiretale-link" and words[1:3] == list(SIDES.values())


def user_of(lab: Lab) -> str:
    """Returns the process that uses a lab, for a message, or an empty string. Only the owner uses the lab of a run:
    if it is gone, leftover processes should be removed. Any process except the link uses another lab."""
    if lab.owner:
        return f"process {lab.owner}" if lab.is_in_use else ""
    for pid in processes_in(lab):
        words = words_of(pid)
        if words and words[0] and not is_own_link(words):
            return f"process {pid} ({Path(words[0]).name})"
    return ""


def end_processes(pids: Iterable[int], number: signal.Signals) -> None:
    """Sends a signal; a process may already have ended."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def remove_hosts(lab: Lab) -> None:
    """Stops all processes on the hosts and removes them with their interfaces. A second call does nothing."""
    end_processes(processes_in(lab), signal.SIGTERM)
    deadline = time.monotonic() + END_SECONDS
    while (left := processes_in(lab)) and time.monotonic() < deadline:
        time.sleep(0.05)
    end_processes(left, signal.SIGKILL)
    for host in HOSTS:
        if namespace_exists(lab, host):
            command = [find_program("ip"), "netns", "delete", lab.namespace(host)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=30)
            if done.returncode and namespace_exists(lab, host):
                raise WiretaleError(f"{lab.namespace(host)} cannot be removed: {last_line(done.stderr)}")
