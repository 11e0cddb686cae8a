# SPDX-License-Identifier: Apache-2.0
"""Paths of the repository, or of the folder to which .ci/run copies its tests, samples and documents."""

from __future__ import annotations

import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "sample_pcaps"
SCENARIOS = ROOT / "tests" / "scenarios"
CAPTURES = sorted(SAMPLES.glob("*.pcap*"))
# Spellings of rates, sizes, times and counts that every program accepts, with their values.
UNIT_SPELLINGS: dict[str, Any] = tomllib.loads((ROOT / "tests" / "analyzer" / "unit_spellings.toml").read_text("utf-8"))
Run = Callable[..., "subprocess.CompletedProcess[str]"]
SampleReport = Callable[[str], Path]  # of the name of a sample
