# SPDX-License-Identifier: Apache-2.0
"""A checkout whose compiled core is older than its Python, as after `git pull` without `make build`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from checkout import ROOT
from wiretale.analyzer import _core
from wiretale.analyzer.core_stamp import DECLARATIONS

pytestmark = pytest.mark.skipif(
    not (ROOT / "analyzer" / DECLARATIONS[0]).is_file() or not _core.STAMP,
    reason="needs a checkout with a core that setup.py compiled",
)
TEXT = "the native core cannot be loaded (it was compiled from an older version of the sources): make build"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of this checkout, with its compiled core and without other C sources than those that the stamp covers."""
    package = tmp_path / "src" / "wiretale"
    headers = {Path(name).name for name in DECLARATIONS}

    def skipped(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if name.endswith((".c", ".h", ".dict")) and name not in headers]

    shutil.copytree(ROOT / "src" / "wiretale", package)
    shutil.copytree(ROOT / "analyzer", package / "analyzer", ignore=skipped)
    shutil.copy(_core.__file__, package / "analyzer")
    for name in ("reports", "traffic"):
        (package / name).symlink_to(ROOT / name)
    for name in ("Makefile", "setup.cfg"):
        (tmp_path / name).touch()
    return tmp_path


def run_in(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=checkout, env=environment)


@pytest.mark.parametrize("declaration", DECLARATIONS)
def test_a_core_of_older_sources_is_refused_with_the_command_that_compiles_it(
    checkout: Path, samples: Path, declaration: str
) -> None:
    capture = str(samples / "damaged.pcap")
    assert run_in(checkout, "-m", "wiretale", "analyze", capture).returncode == 3
    with (checkout / "src" / "wiretale" / "analyzer" / declaration).open("a") as file:
        file.write("\n")
    for options in ((), ("--jsonl", "flows")):  # whose words are checked by the core
        done = run_in(checkout, "-m", "wiretale", "analyze", capture, *options)
        assert (done.returncode, done.stdout, done.stderr) == (5, "", f"wiretale: {TEXT}\n")


def test_python_and_doctor_name_the_command_as_well(checkout: Path) -> None:
    with (checkout / "src" / "wiretale" / "analyzer" / DECLARATIONS[-1]).open("a") as file:
        file.write("\n")
    code = "import wiretale\ntry: wiretale.analyze('x')\nexcept wiretale.MissingToolError as error: print(error)"
    assert run_in(checkout, "-c", code).stdout == f"{TEXT}\n"
    checks = json.loads(run_in(checkout, "-m", "wiretale", "doctor", "--json").stdout)["checks"]
    core = next(check for check in checks if check["name"] == "native core")
    assert (core["state"], core["remedy"]) == ("missing", "make build")
