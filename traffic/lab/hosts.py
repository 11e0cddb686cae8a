# SPDX-License-Identifier: Apache-2.0
"""The hosts of a lab: three network namespaces in a row, made and removed.

    sender ── left, tracer, right ── receiver

The tracer has no address: the link connects its two interfaces, and captures are made on them. Hosts have static neighbour
entries and send no packets of their own.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from contextlib import suppress
from pathlib import Path

from wiretale.analyzer.errors import MissingToolError, UsageError, WiretaleError
from wiretale.traffic.lab.process import end_all, last_line, run_program
from wiretale.traffic.lab.profile import Profile
from wiretale.traffic.lab.state import HOSTS, Lab, TakenError
from wiretale.traffic.program import find_program

ADDRESSES = {"sender": ("10.99.0.1", "fd00:99::1"), "receiver": ("10.99.0.2", "fd00:99::2")}
LINK_ADDRESSES = ("10.99.0.254", "fd00:99::fe")  # the source of ICMP errors
HARDWARE = {"sender": "02:00:00:00:99:01", "receiver": "02:00:00:00:99:02"}
SIDES = {"sender": "left", "receiver": "right"}  # the interface of the tracer on that side
INTERFACE = "path"  # the interface of a host
OFFLOADS = "tso off gso off gro off tx off"  # so that captures have the packets of a wire
CONTROL, TABLE = "control", "99"  # interface and routing table past the link
IPPROTO_TCP = "6"  # a number, because a minimal system has no /etc/protocols
IPV6_LEAST = 1280
ATTACHED, ATTACHED_MOST = "wtlab", 250  # interface in an attached namespace; namespaces of a lab
SPACE, PROCESS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*"), re.compile(r"[0-9]{1,10}")
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
    if any(namespace_exists(lab, host) for host in HOSTS):
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


def connect_host(lab: Lab, host: str, mtu: int) -> None:
    """Connects a host with the tracer."""
    side = SIDES[host]
    end = ["peer", "name", INTERFACE, "netns", lab.namespace(host), "address", HARDWARE[host]]
    run_ip(lab, "tracer", "link", "add", side, "type", "veth", *end)
    for where, interface in (("tracer", side), (host, INTERFACE)):
        run_program(lab.inside(where, find_program("ethtool"), "-K", interface, *OFFLOADS.split()))
        run_ip(lab, where, "link", "set", interface, "mtu", str(mtu), "up")
    setting = f"/proc/sys/net/ipv6/conf/{side}/disable_ipv6"  # missing if the MTU is small, or without IPv6
    run_program(lab.inside("tracer", "sh", "-c", f"[ ! -e {setting} ] || echo 1 > {setting}"))


def address_host(lab: Lab, host: str, mtu: int) -> None:
    """Gives a host its addresses, a route to the other host, and the neighbour entry of that host."""
    other = next(name for name in ADDRESSES if name != host)
    families = [("-4", 0, "24")]
    if mtu >= IPV6_LEAST and Path("/proc/sys/net/ipv6").exists():
        families.append(("-6", 1, "64"))
    for family, which, prefix in families:
        nodad = ["nodad"] if which else []
        address = f"{ADDRESSES[host][which]}/{prefix}"
        run_ip(lab, host, family, "address", "add", address, "dev", INTERFACE, *nodad)
        run_ip(lab, host, family, "route", "add", "default", "dev", INTERFACE)
        there = [ADDRESSES[other][which], "lladdr", HARDWARE[other], "dev", INTERFACE, "nud", "permanent"]
        run_ip(lab, host, family, "neigh", "replace", *there)


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


def make_hosts(lab: Lab, profile: Profile) -> None:
    """Makes all hosts, connected through the tracer."""
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
    """Connects sender and receiver directly for TCP: the control connection of a UDP test must not use the link."""
    end = ["peer", "name", CONTROL, "netns", lab.namespace("receiver"), "address", HARDWARE["receiver"]]
    run_ip(lab, "sender", "link", "add", CONTROL, "address", HARDWARE["sender"], "type", "veth", *end)
    for host in ADDRESSES:
        other = next(name for name in ADDRESSES if name != host)
        there = ADDRESSES[other][0]
        run_ip(lab, host, "link", "set", CONTROL, "up")
        run_ip(lab, host, "neigh", "replace", there, "lladdr", HARDWARE[other], "dev", CONTROL)
        run_ip(lab, host, "route", "add", there, "dev", CONTROL, "src", ADDRESSES[host][0], "table", TABLE)
        run_ip(lab, host, "rule", "add", "ipproto", IPPROTO_TCP, "lookup", TABLE)


def target_space(target: str) -> tuple[str, Path]:
    """Returns a network namespace as ip(8) names it, and its file, from `netns:NAME` or `pid:NUMBER`."""
    kind, _, name = target.partition(":")
    pattern = {"netns": SPACE, "pid": PROCESS}.get(kind)
    if not pattern or not pattern.fullmatch(name):
        raise UsageError(f"{target}: expected netns:NAME, or pid:NUMBER of a process in it")
    path = Path("/proc", name, "ns/net") if kind == "pid" else Path("/run/netns", name)
    try:
        found = path.stat()
    except OSError as error:
        raise UsageError(f"{target}: {path}: {error.strerror}") from None
    if found.st_ino == Path("/proc/self/ns/net").stat().st_ino:
        raise UsageError(f"{target}: expected another network namespace than that of this command")
    return name, path


def attach_space(lab: Lab, host: str, target: str) -> str:
    """Connects an existing network namespace with a host, which routes its packets over the link. Returns its address.

    Everything that is made disappears with the host.
    """
    space, path = target_space(target)
    ip, inside = find_program("ip"), [find_program("nsenter"), f"--net={path}"]
    if any(path.samefile(Path("/run/netns", lab.namespace(name))) for name in HOSTS):
        raise UsageError(f"{target}: this is a host of the lab")
    if ATTACHED in run_program([*inside, ip, "-o", "link"]):
        raise UsageError(f"{target}: is attached to a lab already")
    known = "".join(run_program([ip, "-n", lab.namespace(name), "-o", "link"]) for name in ADDRESSES)
    number = next((one for one in range(1, ATTACHED_MOST + 1) if f" to{one}@" not in known), 0)
    if not number:
        raise UsageError(f"the lab {lab.name} has {ATTACHED_MOST} attached namespaces: no more can be attached")
    card = f"to{number}"
    mtu = int(json.loads(run_program([ip, "-n", lab.namespace(host), "-j", "link", "show", INTERFACE]))[0]["mtu"])
    try:
        run_ip(lab, host, "link", "add", card, "type", "veth", "peer", "name", ATTACHED, "netns", space)
        for where in (lab.inside(host), inside):
            name = ATTACHED if where is inside else card
            run_program([*where, find_program("ethtool"), "-K", name, *OFFLOADS.split()])
            run_program([*where, ip, "link", "set", name, "mtu", str(mtu), "up"])
        route_space(lab, host, number, inside, mtu)
    except BaseException:
        with suppress(WiretaleError):
            run_ip(lab, host, "link", "delete", card)
        raise
    return f"10.98.{number}.2"


def route_space(lab: Lab, host: str, number: int, inside: list[str], mtu: int) -> None:
    """Gives the ends of an attachment their addresses, and routes between it and the other host."""
    other = next(name for name in ADDRESSES if name != host)
    ip, net4, net6 = find_program("ip"), f"10.98.{number}", f"fd00:98:{number:x}:"
    families = [("-4", f"{net4}.1", f"{net4}.2", f"{net4}.0/30", "30", "10.98.0.0/15", 0, "ipv4/ip_forward")]
    if mtu >= IPV6_LEAST and Path("/proc/sys/net/ipv6").exists():
        ends = (f"{net6}:1", f"{net6}:2", f"{net6}:/64", "64", "fd00:98::/31")
        families.append(("-6", *ends, 1, "ipv6/conf/all/forwarding"))
    for family, near, far, net, prefix, lab_net, which, setting in families:
        nodad = ["nodad"] if which else []
        run_program(lab.inside(host, "sh", "-c", f"echo 1 > /proc/sys/net/{setting}"))
        run_ip(lab, host, family, "address", "add", f"{near}/{prefix}", "dev", f"to{number}", *nodad)
        if which:  # the source of neighbour solicitations for forwarded packets, because QUIET hosts make none
            run_ip(lab, host, family, "address", "add", "fe80::1/64", "dev", f"to{number}", *nodad)
        run_program([*inside, ip, family, "address", "add", f"{far}/{prefix}", "dev", ATTACHED, *nodad])
        run_program([*inside, ip, family, "route", "add", lab_net, "via", near])
        run_ip(lab, other, family, "route", "add", net, "via", ADDRESSES[host][which])


def processes_in(lab: Lab) -> list[int]:
    """Returns the processes on the hosts."""
    found: list[int] = []
    for host in HOSTS:
        if namespace_exists(lab, host):
            command = [find_program("ip"), "netns", "pids", lab.namespace(host)]
            said = subprocess.run(command, capture_output=True, text=True, timeout=30)
            found += [int(word) for word in said.stdout.split()]
    return [pid for pid in found if pid != os.getpid()]


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
    for host in HOSTS:
        if namespace_exists(lab, host):
            command = [find_program("ip"), "netns", "delete", lab.namespace(host)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=30)
            if done.returncode and namespace_exists(lab, host):
                raise WiretaleError(f"{lab.namespace(host)} cannot be removed: {last_line(done.stderr)}")
