# SPDX-License-Identifier: Apache-2.0
"""`wiretale traffic path`: the routers of a way that the test made, one that is silent, and one that does not forward."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import needs
from routed_hosts import ENDS, ROUTER, namespaces, run
from wiretale.traffic.experiment.host_facts import facts_of_plan
from wiretale.traffic.experiment.plan import read_plan
from wiretale.traffic.program import find_program

pytestmark = [pytest.mark.xdist_group("routers"), needs.marked(needs.network_namespaces(), needs.programs("nft"))]

ROUTER_ADDRESS, HOST = "10.77.1.1", "10.77.2.2"
SILENT = "ip netns exec {d} nft 'add table ip t; add chain ip t o {{ type filter hook output priority 0; }}; "
SILENT += "add rule ip t o icmp type time-exceeded drop'"
PLAN = """
[sender]
netns = "{c}"
[receiver]
netns = "{s}"
address = "10.77.2.2"
[[test]]
name = "one"
protocol = "udp"
sizes = [100]
count = 1
"""


@pytest.fixture(scope="module")
def names() -> Iterator[dict[str, str]]:
    with namespaces() as made:
        run(f"ip netns exec {{d}} sh -ec '{ROUTER}'", **made)
        run(ENDS + "; ".join(f"ip netns exec {{{end}}} sysctl -qw net.ipv4.icmp_ratemask=0" for end in "ds"), **made)
        yield made


def walked(names: dict[str, str], *options: str) -> tuple[int, dict[str, Any]]:
    command = ["ip", "netns", "exec", names["c"], find_program("wiretale-traffic"), "path", "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


def test_a_router_without_a_route_ends_the_way(names: dict[str, str]) -> None:
    """The first test: a kernel refuses a host only a few times a minute."""
    code, path = walked(names, "10.77.3.3")
    assert (code, path["reached"]) == (3, False)
    assert [hop["address"] for hop in path["hops"]] == [ROUTER_ADDRESS]


def test_the_routers_are_those_of_the_way(names: dict[str, str]) -> None:
    code, path = walked(names, HOST)
    assert (code, path["reached"], path["address"], path["port"]) == (0, True, HOST, 33434)
    assert [(hop["ttl"], hop["address"]) for hop in path["hops"]] == [(1, ROUTER_ADDRESS), (2, HOST)]
    assert all(0 < rtt < 1e9 for hop in path["hops"] for rtt in hop["rtt_ns"] if rtt is not None)


def test_a_host_that_answers_from_the_port_has_its_address() -> None:
    """A program has the port, so that no ICMP message says where the way ends."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as echo:
        echo.bind(("127.0.0.1", 0))
        answering = threading.Thread(target=lambda: echo.sendto(*echo.recvfrom(64)))
        answering.start()
        command = [find_program("wiretale-traffic"), "path", "--json", "--probes", "1", "--port"]
        done = subprocess.run([*command, str(echo.getsockname()[1]), "127.0.0.1"], capture_output=True, timeout=30)
        answering.join()
    path = json.loads(done.stdout)
    assert (done.returncode, path["reached"], [hop["address"] for hop in path["hops"]]) == (0, True, ["127.0.0.1"])


def test_a_run_keeps_them_as_a_fact(names: dict[str, str]) -> None:
    facts = facts_of_plan(read_plan(PLAN.format(**names), "plan.toml", "plan"))
    assert facts["path"] == [f"1 {ROUTER_ADDRESS}", f"2 {HOST}"]


def test_a_silent_router_is_not_known(names: dict[str, str]) -> None:
    run(SILENT, **names)
    code, path = walked(names, "--probes", "1", "--wait", "200ms", HOST)
    assert (code, [hop["address"] for hop in path["hops"]]) == (0, [None, HOST])
    assert path["hops"][0]["rtt_ns"] == [None]
