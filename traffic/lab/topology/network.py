# SPDX-License-Identifier: Apache-2.0
"""The network of a lab: a path from sender to receiver, and branches with further hosts.

    sender ── tracer ── router ── tracer.ROUTER ── receiver
      └─ to1 ── tracer.HOST ── HOST, 10.98.1.2

Each end of a link has the same hardware address on every link, so that sender and receiver need no other neighbors if there are
routers between them.
"""

from __future__ import annotations

from itertools import pairwise

from wiretale.traffic.lab.hosts import (
    ADDRESSES,
    INTERFACE,
    add_neighbor,
    address_host,
    connect_host,
    families,
    limit_card,
    make_namespace,
    run_ip,
    set_kernel,
)
from wiretale.traffic.lab.process import run_program
from wiretale.traffic.lab.profile import Profile
from wiretale.traffic.lab.state import ENDS, Lab
from wiretale.traffic.program import find_program

FORWARDING = ("ipv4/ip_forward", "ipv6/conf/all/forwarding")


def make_network(lab: Lab, profile: Profile) -> None:
    """Makes all hosts, connected through their tracers."""
    for space in lab.spaces:
        make_namespace(lab, space)
    for tracer, (left, right) in zip(lab.tracers, pairwise(lab.path), strict=False):
        connect_host(lab, left, INTERFACE if left in ENDS else "right", tracer, "left", profile.mtu)
        connect_host(lab, right, INTERFACE if right in ENDS else "left", tracer, "right", profile.mtu)
    for end in ENDS:
        address_host(lab, end, profile.mtu)
    for router in lab.hops:
        connect_router(lab, router, profile.mtu)
    for number, router in enumerate(lab.hops, start=1):
        address_router(lab, router, number, profile.mtu)
    for number, host in enumerate(profile.topology.hosts, start=1):
        connect_branch(lab, host.name, host.at, number, profile.mtu)
    for name in (*ENDS, *lab.hosts):
        set_kernel(lab, name, profile.sysctl)
        if profile.card:
            limit_card(lab, name, profile.card)


def forward_packets(lab: Lab, host: str, which: int) -> None:
    """Makes a router of a host, for IPv4 (0) or IPv6 (1)."""
    run_program(lab.inside(host, "sh", "-c", f"echo 1 > /proc/sys/net/{FORWARDING[which]}"))


def route_along(lab: Lab, host: str, family: str, which: int, net: str) -> None:
    """Gives all others on the path a route to a network behind one of them."""
    place = lab.path.index(host)
    for number, other in enumerate(lab.path):
        if number != place:
            gateway = ADDRESSES["receiver" if number < place else "sender"][which]
            run_ip(lab, other, family, "route", "add", net, "via", gateway)


def connect_router(lab: Lab, router: str, mtu: int) -> None:
    """Makes a router forward packets to sender and receiver."""
    for family, which in families(mtu).items():
        forward_packets(lab, router, which)
        for side, end in zip(("left", "right"), ENDS, strict=True):
            run_ip(lab, router, family, "route", "add", ADDRESSES[end][which], "dev", side)
            add_neighbor(lab, router, ADDRESSES[end][which], side, side)


def address_router(lab: Lab, router: str, number: int, mtu: int) -> None:
    """Gives a router its address, which is the source of its ICMP messages."""
    for family, which in families(mtu).items():
        address = (f"10.99.1.{number}", f"fd00:99:1::{number}")[which]
        run_ip(lab, router, family, "address", "add", address, "dev", "lo")
        route_along(lab, router, family, which, address)


def connect_branch(lab: Lab, host: str, at: str, number: int, mtu: int) -> None:
    """Connects a host beside the path, through the tracer of its access link."""
    tracer = f"tracer.{host}"
    connect_host(lab, host, INTERFACE, tracer, "left", mtu)
    connect_host(lab, at, f"to{number}", tracer, "right", mtu)
    route_branch(lab, at, number, lab.inside(host), INTERFACE, mtu)
    for which in families(mtu).values():
        add_neighbor(lab, host, branch_address(number, which, 1), INTERFACE, "right")
        add_neighbor(lab, at, branch_address(number, which), f"to{number}", "left")


def branch_address(number: int, which: int = 0, end: int = 2) -> str:
    """Returns the address of a branch, or with `end` 1 that of the path's end of it."""
    return (f"10.98.{number}.{end}", f"fd00:98:{number:x}::{end}")[which]


def addresses(lab: Lab) -> dict[str, str]:
    """Returns the IPv4 addresses of sender, receiver and the hosts beside them."""
    branches = {host: branch_address(number) for number, host in enumerate(lab.hosts, start=1)}
    return {**{end: ADDRESSES[end][0] for end in ENDS}, **branches}


def route_branch(lab: Lab, at: str, number: int, inside: list[str], interface: str, mtu: int) -> None:
    """Gives both ends of a branch their addresses, and routes between it and the path. `inside` runs a command in the branch."""
    ip = find_program("ip")
    for family, which in families(mtu).items():
        near, far = branch_address(number, which, 1), branch_address(number, which)
        prefix, lab_net = ((30, "10.98.0.0/15"), (64, "fd00:98::/31"))[which]
        nodad = ["nodad"] if which else []
        forward_packets(lab, at, which)
        run_ip(lab, at, family, "address", "add", f"{near}/{prefix}", "dev", f"to{number}", *nodad)
        if which:  # the source of neighbor solicitations for forwarded packets, because QUIET hosts make none
            run_ip(lab, at, family, "address", "add", "fe80::1/64", "dev", f"to{number}", *nodad)
        run_program([*inside, ip, family, "address", "add", f"{far}/{prefix}", "dev", interface, *nodad])
        run_program([*inside, ip, family, "route", "add", lab_net, "via", near])
        route_along(lab, at, family, which, f"{branch_address(number, which, 0)}/{prefix}")
