# SPDX-License-Identifier: Apache-2.0
"""Samples for tests that need a few captures of different kinds."""

from __future__ import annotations

import pytest

from checkout import SAMPLES

# Damage, interfaces with names and drops, fragments, losses, numbered datagrams and streams, IPv6 behind a tag, a tunnel.
VARIED = [
    *(
        SAMPLES / f"{name}.pcap"
        for name in ("damaged", "ip_fragments", "tcp_losses", "udp_blocks", "vlan_ipv6", "vxlan_loss")
    ),
    *(SAMPLES / f"{name}.pcapng" for name in ("tcp_blocks", "two_interfaces")),
]
# For a test whose subject is a format, a width or a click: more samples would show the same again.
FEW_SAMPLES = pytest.mark.parametrize("sample", VARIED, indirect=True, ids=lambda path: path.name)
