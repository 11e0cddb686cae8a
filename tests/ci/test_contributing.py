# SPDX-License-Identifier: Apache-2.0
"""The finding of CONTRIBUTING.md works as it is written there, in a copy of the checkout."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

import needs
from checkout import ROOT

pytestmark = needs.marked(needs.ci())

CODE = "many-resets"
#: tests that look at all findings, and those of the new one among them
OF_ALL = ("test_finding_evidence.py", "test_finding_examples.py", "test_explain.py", "test_evidence_by_tshark.py")
OF_THE_NEW = (
    f"{CODE} or many_resets or every_finding or examples_name or captures_of_examples or every_code or name_the_results"
)


def blocks() -> Iterator[tuple[str, str]]:
    """File and text of each block of the chapter whose first line is a file."""
    chapter = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("\n## Add a finding\n")[2].partition("\n## ")[0]
    for text in re.findall(r"```python\n(.*?)```", chapter, re.DOTALL):
        head, _, body = dedent(text).partition("\n")
        yield head.removeprefix("# "), body


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy with the blocks inserted, in which `wiretale` is the package of the copy."""
    copy = tmp_path_factory.mktemp("checkout")
    unneeded = shutil.ignore_patterns("__pycache__", ".git", ".venv", ".*_cache", "build")
    shutil.copytree(ROOT, copy, ignore=unneeded, dirs_exist_ok=True)
    package = copy / "package" / "wiretale"
    package.mkdir(parents=True)
    for place in [
        *(copy / "src" / "wiretale").iterdir(),
        *(copy / name for name in ("analyzer", "reports", "traffic")),
    ]:
        (package / place.name).symlink_to(place)
    for name, body in blocks():
        with (copy / name).open("a", encoding="utf-8") as file:
            file.write(f"\n\n{body}")
    return copy


def run(checkout: Path, *words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(checkout / "package"), "PYTHONDONTWRITEBYTECODE": "1"}
    made = subprocess.run(
        [sys.executable, *words],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    return made.stdout


def test_the_finding_of_the_guide_passes_the_tests_of_all_findings(checkout: Path) -> None:
    run(checkout, ".ci/finding_examples.py")
    run(checkout, ".ci/make_docs.py")
    assert f"### {CODE}\n" in (checkout / "docs" / "findings.md").read_text("utf-8")
    tests = [f"tests/analyzer/findings/{name}" for name in OF_ALL]
    output = run(checkout, "-m", "pytest", "-rA", "-q", "-p", "no:cacheprovider", *tests, "-k", OF_THE_NEW)
    for test in tests:
        assert f"PASSED {test}" in output or (test == tests[-1] and not shutil.which("tshark")), output
    assert CODE in run(checkout, "-m", "wiretale", "analyze", "--all", f"sample_pcaps/findings/{CODE}.pcap.gz")


def test_the_guide_names_all_that_a_finding_costs(checkout: Path) -> None:
    names = [name for name, _ in blocks()]
    assert len(set(names)) == len(names) == 3 and sum(name.startswith("tests/analyzer") for name in names) == 1
