# SPDX-License-Identifier: Apache-2.0
"""wiretale lab attach: an existing network namespace or container is connected with a host of a lab."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path

from wiretale.analyzer.errors import UsageError, WiretaleError
from wiretale.traffic.lab.hosts import INTERFACE, OFFLOADS, run_ip
from wiretale.traffic.lab.process import run_program
from wiretale.traffic.lab.state import Lab
from wiretale.traffic.lab.topology.network import branch_address, route_branch
from wiretale.traffic.program import find_program

ATTACHED, ATTACHED_MOST = "wtlab", 250  # interface in an attached namespace; namespaces of a lab
SPACE, PROCESS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*"), re.compile(r"[0-9]{1,10}")


def target_space(target: str) -> tuple[str, Path]:
    """Returns a network namespace as ip(8) names it, and its file, from `netns:NAME` or `pid:NUMBER`."""
    kind, _, name = target.partition(":")
    pattern = {"netns": SPACE, "pid": PROCESS}.get(kind)
    if not pattern or not pattern.fullmatch(name):
        raise UsageError(f"{target}: expected netns:NAME, or pid:NUMBER of a process in it")
    path = Path("/proc", name, "ns/net") if kind == "pid" else Path("/run/netns", name)
    try:
        status = path.stat()
    except OSError as error:
        raise UsageError(f"{target}: {path}: {error.strerror}") from None
    if status.st_ino == Path("/proc/self/ns/net").stat().st_ino:
        raise UsageError(f"{target}: expected another network namespace than that of this command")
    return name, path


def attach_space(lab: Lab, host: str, target: str) -> str:
    """Connects an existing network namespace with a host, which routes its packets over the link. Returns its address.

    Everything that is made disappears with the host.
    """
    space, path = target_space(target)
    ip, inside = find_program("ip"), [find_program("nsenter"), f"--net={path}"]
    if any(path.samefile(Path("/run/netns", lab.namespace(name))) for name in lab.spaces):
        raise UsageError(f"{target}: this is a host of the lab")
    if ATTACHED in run_program([*inside, ip, "-o", "link"]):
        raise UsageError(f"{target}: is attached to a lab already")
    listed = (["-o", "link"], ["route"])  # the other hosts keep routes to a namespace that was deleted
    links = "".join(run_program([ip, "-n", lab.namespace(name), *words]) for name in lab.path for words in listed)
    free = (
        place
        for place in range(1, ATTACHED_MOST + 1)
        if f" to{place}@" not in links and f"10.98.{place}.0/" not in links
    )
    number = next(free, 0)
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
        route_branch(lab, host, number, inside, ATTACHED, mtu)
    except BaseException:
        with suppress(WiretaleError):
            run_ip(lab, host, "link", "delete", card)
        raise
    return branch_address(number)
