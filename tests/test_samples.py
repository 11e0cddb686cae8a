# SPDX-License-Identifier: Apache-2.0
"""The sample captures are what their script makes, stay small, and are described."""

import subprocess
import sys
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parents[1] / "sample_pcaps"
NAMES = sorted(path.name for path in SAMPLES.glob("*.pcap*"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    subprocess.run([sys.executable, SAMPLES / "make_samples.py", folder], check=True, timeout=120)
    return folder


def test_script_makes_all_samples_and_no_others(made: Path) -> None:
    assert sorted(path.name for path in made.iterdir()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_sample_is_made_byte_for_byte(made: Path, name: str) -> None:
    assert (made / name).read_bytes() == (SAMPLES / name).read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_sample_is_small_and_described(name: str) -> None:
    assert (SAMPLES / name).stat().st_size <= 200_000
    assert f"`{name}`" in (SAMPLES / "README.md").read_text()
