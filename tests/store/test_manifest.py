# SPDX-License-Identifier: Apache-2.0
"""A damaged or hostile capture.json: each command of a store does its work or prints one line, and `check` names it."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crafted import dns_answer, dns_query, write_timed
from wiretale.reports.store.add import add
from wiretale.reports.store.compact import compact
from wiretale.reports.store.layout import MANIFEST

DAY, MUTATIONS = 86_400, 4  # mutations of each kind of manifest
# Runs the command of each line in a process of its own, and prints its exit code and stderr.
RUNS = """
import json, os, sys, tempfile, duckdb
from wiretale.cli import main
import wiretale.analyzer.trace, wiretale.reports.store.upkeep, wiretale.reports.store.views, wiretale.reports.store.baseline
for line in sys.stdin:
    with tempfile.TemporaryFile() as errors:
        child = os.fork()
        if not child:
            os.dup2(errors.fileno(), 2)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            code = 70
            try:
                code = main(json.loads(line))
            except BaseException:
                sys.excepthook(*sys.exc_info())
            sys.stderr.flush()
            os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        errors.seek(0)
        print(json.dumps([code, errors.read().decode()]), flush=True)
"""


def a_capture(folder: Path, days: int, number: int) -> str:
    packets = dns_query(0.5, number=number), dns_answer(0.6, number=number)
    return str(write_timed(folder / f"{days}-{number}.pcap", [(at - days * DAY, packet) for at, packet in packets]))


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of a day with compacted captures, one with captures that were added together, and one with a single one."""
    folder = tmp_path_factory.mktemp("manifests")
    assert {addition.outcome for addition in add(folder / "store", [a_capture(folder, 3, n) for n in range(3)])} == {
        "added"
    }
    assert [joined.captures for joined in compact(folder / "store", 0)] == [3]
    list(add(folder / "store", [a_capture(folder, 2, number) for number in range(16)]))
    list(add(folder / "store", [a_capture(folder, 1, 0)]))
    a_capture(folder, 0, 0)
    return folder


Runs = Callable[..., tuple[int, str]]


@pytest.fixture
def runs() -> Any:
    """Runs commands, each of which must end with a known exit code and one line at most."""
    with subprocess.Popen(
        [sys.executable, "-c", RUNS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin and process.stdout
        stdin, stdout = process.stdin, process.stdout

        def run(*words: str | Path) -> tuple[int, str]:
            stdin.write(json.dumps([str(word) for word in words]) + "\n")
            stdin.flush()
            code, errors = json.loads(stdout.readline())
            assert code in (0, 3, 4) and errors.count("\n") <= 1, (words, code, errors)
            return code, errors

        yield run
        stdin.close()


def commands(runs: Runs, folder: Path, store: Path) -> list[int]:
    """Runs all of them, and returns the exit codes of check, compact and query."""
    new = folder / "0-0.pcap"
    codes = [
        runs("store", "check", store)[0],
        runs("store", "compact", store, "--age", "0s")[0],
        runs("store", "query", store, "SELECT count(*) FROM flows")[0],
    ]
    for words in (
        ("store", "flows", store),
        ("diff", "--store", store, new),
        ("store", "prune", store, "--size", "20k", "-n"),
        ("store", "add", store, new),
        ("store", "prune", store, "--size", "20k"),
        ("store", "prune", store, "--size", "0"),
    ):
        code, errors = runs(*words)
        assert code in (0, 4), (words, code, errors)
    assert list(store.glob("day=2*")) == []
    return codes


def mutated(draw: random.Random, text: str) -> str:
    """Returns other JSON, or none: a value of another kind, a missing or additional member, or changed bytes."""
    manifest = json.loads(text)
    place, key = manifest, draw.choice([*manifest, "sizes", "captures", "files", "members"])
    while draw.random() < 0.6 and isinstance(place.get(key), dict) and place[key]:
        place = place[key]
        key = draw.choice([*place])
    values = (
        None,
        -1,
        0,
        10**40,
        1e300,
        float("nan"),
        "",
        "x",
        "../../x",
        [],
        [1],
        ["x"],
        [[]],
        {},
        {"x": 1},
        {"": {"": []}},
        True,
    )
    how = draw.randrange(6)
    if how == 0:
        place.pop(key, None)
    elif how == 1:
        place[draw.choice(("x", "../x.parquet", "\ud800", "flows.parquet", "sizes"))] = draw.choice(values)
    elif how == 2:
        return text[: draw.randrange(len(text))]
    elif how == 3 and isinstance(place.get(key), list):
        place[key].append(draw.choice([*values, *place[key]]))
    else:
        place[key] = draw.choice(values)
    return json.dumps(manifest)


@pytest.mark.parametrize("kind", ["compacted", "together", "single"])
def test_no_manifest_makes_a_command_fail_in_another_way(original: Path, tmp_path: Path, runs: Runs, kind: str) -> None:
    place = dict(zip(("compacted", "together", "single"), sorted(original.glob("store/day=2*/*")), strict=True))[kind]
    text = (place / MANIFEST).read_text()
    assert ('"sizes":' in text, '"captures":' in text) == (kind == "compacted", kind != "single")
    draw, unchanged = random.Random(f"{kind} manifest"), 0
    for number in range(MUTATIONS):
        store = Path(shutil.copytree(original / "store", tmp_path / str(number)))
        changed = mutated(draw, text)
        (store / place.relative_to(original / "store") / MANIFEST).write_text(changed)
        try:
            check, _, query = commands(runs, original, store)
        except AssertionError as error:
            raise AssertionError(changed) from error
        unchanged += check == 0
        assert query == 0
        shutil.rmtree(store)
    assert unchanged < MUTATIONS


@pytest.mark.parametrize("content", [None, b"", b"[]", b"\xff\xfe", b"[" * 100_000, b'{"files": {}}'])
def test_a_missing_or_senseless_manifest_is_named(
    original: Path, tmp_path: Path, runs: Runs, content: bytes | None
) -> None:
    store = Path(shutil.copytree(original / "store", tmp_path / "store"))
    file = next(store.glob("day=2*/many=*")) / MANIFEST
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    code, errors = runs("store", "check", store)
    assert code in (3, 4), errors
    code, errors = runs("store", "compact", store, "--age", "0s")  # has nothing to do
    assert code == 0 or f"{file}: is missing or damaged" in errors, errors
    assert commands(runs, original, store)[2] == 0
