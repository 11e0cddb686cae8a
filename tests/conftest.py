# SPDX-License-Identifier: Apache-2.0
"""What tests share: the samples, captures made by others, and the program itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SAMPLES = sorted((ROOT / "sample_pcaps").glob("*.pcap*"))
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(params=SAMPLES, ids=lambda path: path.name)
def sample(request: pytest.FixtureRequest) -> Path:
    """Each of the sample captures."""
    path: Path = request.param
    return path


@pytest.fixture(scope="session")
def samples() -> Path:
    """The folder of sample captures."""
    return ROOT / "sample_pcaps"


@pytest.fixture(scope="session")
def others() -> Path:
    """Captures made by others, beside the repository."""
    folder = ROOT.parent / "shared" / "captures"
    if not folder.is_dir():
        pytest.skip("no ../shared/captures beside the repository")
    return folder


@pytest.fixture(scope="session")
def wiretale_run() -> Run:
    """Runs `wiretale` as a user would, in a process of its own."""

    def run(*arguments: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "wiretale", *map(str, arguments)]
        environment = {**os.environ, "COLUMNS": "140", **options.pop("env", {})}  # type: ignore[dict-item]
        options = {"capture_output": True, "text": True, "timeout": 300, **options}
        return subprocess.run(command, env=environment, **options)  # type: ignore[call-overload, no-any-return]

    return run
