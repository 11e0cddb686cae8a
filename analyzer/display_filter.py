# SPDX-License-Identifier: Apache-2.0
"""Wireshark display filters for flows and frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

PORT_FIELDS = {protocol: f"{protocol}.port" for protocol in ("tcp", "udp", "udplite", "sctp", "dccp")}
FRAMES_MAX = 50


def flow_filter(flow: Mapping[str, Any]) -> str:
    """Returns a filter for both directions of a flows row: `ip.addr == 10.0.0.1 && … && tcp.port == 80`."""
    address = "ip.addr" if flow["ip_version"] == 4 else "ipv6.addr"
    parts = [f"{address} == {flow['source']}", f"{address} == {flow['destination']}"]
    field = PORT_FIELDS.get(flow["protocol"])
    if field and flow["source_port"] is not None:
        parts += [f"{field} == {flow['source_port']}", f"{field} == {flow['destination_port']}"]
    elif flow["protocol_number"] is not None:
        parts.append(f"{'ip.proto' if flow['ip_version'] == 4 else 'ipv6.nxt'} == {flow['protocol_number']}")
    return " && ".join(dict.fromkeys(parts))


def frame_filter(frames: Iterable[int]) -> str:
    """Returns a filter for frames of one file: `frame.number in {4, 7}`."""
    chosen = sorted(set(frames))[:FRAMES_MAX]
    if len(chosen) == 1:
        return f"frame.number == {chosen[0]}"
    return f"frame.number in {{{', '.join(map(str, chosen))}}}"
