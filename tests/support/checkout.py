# SPDX-License-Identifier: Apache-2.0
"""Paths of the repository, or of the folder to which .ci/run copies its tests, samples and documents."""

from __future__ import annotations

import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "sample_pcaps"
SCENARIOS = ROOT / "tests" / "scenarios"
CAPTURES = sorted(SAMPLES.glob("*.pcap*"))
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
# Spellings of rates, sizes, times and counts that every program accepts, with their values.
UNIT_SPELLINGS: dict[str, Any] = tomllib.loads((ROOT / "tests" / "analyzer" / "unit_spellings.toml").read_text("utf-8"))
Run = Callable[..., "subprocess.CompletedProcess[str]"]
SampleReport = Callable[[str], Path]  # of the name of a sample
