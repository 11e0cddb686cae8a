# SPDX-License-Identifier: Apache-2.0
"""The checks of `make lint` in .ci/ report planted breaches, and accept a clean tree."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import needs
from checkout import ROOT

pytestmark = needs.marked(needs.ci())


def test_help_lists_the_targets_with_sed_alone(tmp_path: Path) -> None:
    """Bare Debian has no column(1)."""
    for name in ("make", "sh", "sed"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    help_run = subprocess.run(["make", "help"], cwd=ROOT, env={"PATH": str(tmp_path)}, capture_output=True, text=True)
    assert help_run.returncode == 0 and not help_run.stderr, help_run.stderr
    lines = help_run.stdout.splitlines()
    targets = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert [line.split()[1] for line in lines] == targets
    assert len({len(line.partition("make ")[2]) - len(line.split(None, 2)[2]) for line in lines}) == 1


def load(name: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Returns a script of .ci/checks/ that checks the tree below `root`."""
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / "checks" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", root)
    return module


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.mark.parametrize(
    ("files", "breaches"),
    [
        ({"analyzer/core/update/a.c": '#include "flow/b.h"\n', "analyzer/core/flow/b.h": ""}, []),
        (
            {"analyzer/core/flow/b.h": '#include "update/a.h"\n', "analyzer/core/update/a.h": ""},
            ["include analyzer/core/flow/b.h analyzer/core/update/a.h"],
        ),
        (
            {"analyzer/core/tcp/a.h": '#include "tcp/b.h"\n', "analyzer/core/tcp/b.c": '#include "tcp/a.h"\n'}
            | {"analyzer/core/tcp/b.h": ""},
            ["circle analyzer/core/tcp/a", "circle analyzer/core/tcp/b"],
        ),
        (
            {"capture/main.c": '#include "common/x.h"\n#include "traffic/link/y.h"\n', "common/x.h": ""}
            | {"traffic/link/y.h": ""},
            ["include capture/main.c traffic/link/y.h"],
        ),
        ({"analyzer/core/flow/a.c": "#include <Python.h>\n"}, ["include analyzer/core/flow/a.c Python.h"]),
        ({"capture/main.c": '#include "gone.h"\n'}, ["include capture/main.c gone.h (no such file)"]),
        (
            {"capture/status/a.c": '#include "b.h"\n', "capture/status/b.h": ""},
            ["include capture/status/a.c b.h (written without its folder)"],
        ),
        ({f"reports/export/file_{number}.py": "" for number in range(16)}, ["files reports/export"]),
    ],
)
def test_breaches_of_includes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], breaches: list[str]
) -> None:
    write(tmp_path, files)
    assert load("includes", tmp_path, monkeypatch).find_breaches() == breaches


def test_a_circle_of_includes_and_calls_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Static functions with the same name in two files are no call from one to the other."""
    above = "int work(void);\nstatic int helper(void) { return work(); }\nint run(void) { return helper(); }\n"
    below = "static int helper(void) { return LEAST; }\nint work(void) { return helper(); }\n"
    files = {"analyzer/core/tcp/above.c": above, "analyzer/core/tcp/below.c": '#include "tcp/below.h"\n' + below}
    write(tmp_path, {**files, "analyzer/core/tcp/above.h": "", "analyzer/core/tcp/below.h": "#define LEAST 1\n"})
    for name in files:
        built = (tmp_path / "build" / "lint" / name).with_suffix(".o")
        built.parent.mkdir(parents=True, exist_ok=True)
        command = ["cc", "-c", f"-I{tmp_path}/analyzer/core", tmp_path / name, "-o", built]
        subprocess.run(command, check=True)
    check = load("includes", tmp_path, monkeypatch)
    assert check.find_breaches() == []
    write(tmp_path, {"analyzer/core/tcp/below.h": '#include "tcp/above.h"\n#define LEAST 1\n'})
    assert check.find_breaches() == ["circle analyzer/core/tcp/above", "circle analyzer/core/tcp/below"]


def test_phrases_are_found_in_comments_and_documents_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(
        tmp_path,
        {
            "a.c": 'char *s = "in vain";\n\n/* It waits in\n * vain. */ /* is sent\n again */\n',
            "b.py": '"""Mended."""\nTEXT = "a second reading"\nx = 1  # the file\n# knows, the profile knows\n',
            "c.md": "What if it `stands there`?\n```\nin vain\n```\nIt lies before\n>>>>>>> 1a2b (x)\n",
            "d.js": "// names\n//   of servers: http://tells.of/\n",
            "tests/e.py": '"""In vain."""\n',
            "CHANGELOG.md": "in vain\n",
        },
    )
    check = load("prose", tmp_path, monkeypatch)
    assert list(check.find_breaches([tmp_path])) == [
        "a.c:3: in * vain",
        "a.c:4: is sent again",
        "b.py:1: Mended",
        "b.py:3: the file # knows",
        "c.md:5: lies before",
        "c.md:6: >>>>>>> 1a2b (x)",
        "d.js:1: names // of servers",
    ]


def test_few_names_are_vague(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is 3 per 1,000 names; comments, strings and Hypothesis's decorator do not count."""
    write(
        tmp_path,
        {
            "bad.py": "# one found\none = found.rest\n",
            "bound.py": "one = row\n" + "transfer = row\n" * 166,
            "decorated.py": "from hypothesis import given\n\n\n@given(text)\ndef check(packet):\n    return 'one'\n",
            "long.py": "one = row\n" + "transfer = row\n" * 165 + "given = row\n",
            "build/made.py": "rest = row\n",
        },
    )
    check = load("names", tmp_path, monkeypatch)
    assert list(check.find_breaches()) == [
        "bad.py: 3 vague names, 1000.0 per 1,000, at most 3",
        "long.py: 2 vague names, 6.0 per 1,000, at most 3",
    ]
