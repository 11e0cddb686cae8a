# SPDX-License-Identifier: Apache-2.0
"""Facts about the hosts of an experiment, which its results depend on: kernel, processors, settings of the network stack,
interfaces with their queues, offloads and radio, and the routers on the way."""

from __future__ import annotations

import json
import shlex
import subprocess
from typing import Any

from wiretale.traffic.experiment.endpoint import Endpoint
from wiretale.traffic.experiment.plan import Plan

SECONDS = 30
OUTPUT_MOST = 1 << 16  # characters of a fact
MARK = "== wiretale fact "
SETTINGS = (
    *("net.core.rmem_max", "net.core.wmem_max", "net.core.rmem_default", "net.core.wmem_default"),
    *("net.core.default_qdisc", "net.core.netdev_max_backlog", "net.ipv4.udp_mem", "net.ipv4.tcp_rmem"),
    *("net.ipv4.tcp_wmem", "net.ipv4.tcp_mem", "net.ipv4.tcp_congestion_control", "net.ipv4.tcp_sack"),
    *(
        "net.ipv4.tcp_timestamps",
        "net.ipv4.tcp_window_scaling",
        "net.ipv4.tcp_ecn",
        "net.ipv4.tcp_slow_start_after_idle",
    ),
    *("net.ipv4.tcp_no_metrics_save", "net.ipv4.tcp_limit_output_bytes", "net.ipv4.tcp_mtu_probing"),
)
# Name of a fact, and the commands that print it; one that is missing leaves it empty.
FACTS = (
    ("kernel", "uname -srm"),
    ("system", '. /etc/os-release && echo "$PRETTY_NAME"'),
    ("processors", "nproc; sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | sort -u"),
    ("clock", "cat /sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ("settings", f"for s in {' '.join(SETTINGS)}; do echo $s = $(cat /proc/sys/$(echo $s | tr . /)); done"),
    ("interfaces", "ip -details address show | grep -v valid_lft"),
    ("queues", "tc qdisc show"),
    ("route", "ip route get {address}"),
    ("offloads", "ethtool -k {interface} | grep -v fixed; ethtool {interface} | grep -i speed"),
    ("driver", "ethtool -i {interface}"),
    ("radio", "iw dev {interface} info; iw dev {interface} link; grep {interface}: /proc/net/wireless"),
)
INTERFACE = "$(ip route get {address} | sed -n 's/.* dev \\([^ ]*\\).*/\\1/p')"


def script(address: str) -> str:
    """Returns the lines of shell that print all facts, each behind its mark."""
    address = shlex.quote(address)
    interface = INTERFACE.format(address=address)
    lines = [
        f"echo '{MARK}{name}'; {{ {command.replace('{interface}', interface).replace('{address}', address)}; }} 2>/dev/null"
        for name, command in FACTS
    ]
    return "\n".join(['PATH="$PATH:/usr/sbin:/sbin"', "export LC_ALL=C", *lines])


def parse(output: str) -> dict[str, Any]:
    """Returns the facts by name: lists of lines, and the settings by name; None of a fact that is unknown."""
    facts: dict[str, Any] = {name: None for name, _ in FACTS}
    for part in output.split(MARK)[1:]:
        name, _, text = part.partition("\n")
        lines = [line.rstrip() for line in text[:OUTPUT_MOST].splitlines() if line.strip()]
        if name in facts and lines:
            facts[name] = lines
    if facts["settings"]:
        pairs = (line.partition(" = ") for line in facts["settings"])
        facts["settings"] = {name: " ".join(value.split()) or None for name, _, value in pairs}
    return facts


def host_facts(end: Endpoint, address: str) -> dict[str, Any] | None:
    """Returns the facts about a host on its way to an address; None if it does not answer in time."""
    text = script(address)
    command = end.shell(text) if end.is_remote else end.command(["/bin/sh", "-c", text])
    try:
        done = subprocess.run(command, stdin=-3, stdout=-1, stderr=-3, timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse(done.stdout.decode("utf-8", "replace"))


def routers(plan: Plan) -> list[str] | None:
    """Returns the number and address of each router from the sender to the receiver, without times; None if unknown."""
    program = plan.sender.program("wiretale-traffic")
    words = [program, "path", "--json", "--wait", "300ms", "--port", str(plan.port), plan.address]
    try:
        done = subprocess.run(plan.sender.command(words), stdin=-3, stdout=-1, stderr=-3, timeout=SECONDS)
        walked = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    listed = [f"{hop['ttl']} {hop['address'] or 'no answer'}" for hop in walked["hops"]]
    return listed if walked["reached"] else [*listed, f"{plan.address} did not answer"]


def facts_of_plan(plan: Plan) -> dict[str, Any]:
    """Returns the facts about both ends, and the routers between them."""
    ends = {"sender": host_facts(plan.sender, plan.address), "receiver": host_facts(plan.receiver, plan.address)}
    return {**ends, "path": routers(plan)}
