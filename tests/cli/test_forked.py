# SPDX-License-Identifier: Apache-2.0
"""A command that is forked from a process that has imported wiretale is one that is started, for whoever calls it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from forked_commands import run_command


@pytest.mark.parametrize(
    "words, code",
    [
        (["analyze", "tcp_losses.pcap"], 0),
        (["analyze", "-", "--csv"], 0),  # standard input
        (["analyze", "nowhere.pcap"], 4),
        (["diff", "vlan_ipv6.pcap", "timeouts.pcap", "--json"], 0),  # with DuckDB
        (["anlayze", "\udcff"], 2),
    ],
)
def test_a_forked_command_is_one_that_is_started(words: list[str], code: int, samples: Path, tmp_path: Path) -> None:
    ways: dict[str, Any] = {}
    for name, option in {"forked": {}, "started": {"bufsize": -1}}.items():  # another option than those of a fork
        with (samples / "udp_blocks.pcap").open("rb") as stream:
            ways[name] = run_command(*words, cwd=samples, stdin=stream, env={"NO_COLOR": "1"}, **option)
    assert ways["forked"].returncode == code
    for part in ("args", "returncode", "stdout", "stderr"):
        assert getattr(ways["forked"], part) == getattr(ways["started"], part), part


def test_a_forked_command_that_takes_too_long_is_killed(tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run_command("watch", tmp_path, "--store", tmp_path / "store", timeout=1)
