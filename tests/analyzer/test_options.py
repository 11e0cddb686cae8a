# SPDX-License-Identifier: Apache-2.0
"""The options of an analysis are declared once: each reaches the core by every way on which a user can give it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import wiretale
from checkout import ROOT, SAMPLES
from wiretale.analyzer import _core
from wiretale.analyzer.options import (
    DEFAULTS,
    NO_OPTIONS,
    OPTIONS,
    AnalysisKeywords,
    AnalysisOptions,
    ReadingMode,
    keyword_of,
)

CAPTURE = SAMPLES / "tcp_blocks.pcapng"
RECORDER = ROOT / "tests" / "support" / "recorded_core"
TIMES = {"start_ns": "1.5", "end_ns": "4000000000"}  # before and after each packet


def text_of(name: str) -> str:
    """A value that is not the default, as the command line takes it."""
    declared = OPTIONS[name]
    texts = {"text": "tcp or udp", "time": TIMES.get(name, "1.5"), "count": str(declared.least + 6)}
    return texts.get(declared.kind, str(declared.least + 1))


VALUES = {
    name: AnalysisOptions.of({keyword_of(name): value})._asdict()[name]
    for name, value in (
        (name, int(text_of(name)) if OPTIONS[name].kind in ("count", "size") else text_of(name)) for name in OPTIONS
    )
}
CHOOSING = {name for name, option in OPTIONS.items() if option.chooses_packets}
CHANGING = {name for name, option in OPTIONS.items() if option.changes_rows}


def flags(names: set[str] | None = None) -> list[str]:
    """The options of a command."""
    return [
        word for name in OPTIONS if names is None or name in names for word in (OPTIONS[name].long_flag, text_of(name))
    ]


def wiretale_in(folder: Path, *words: object) -> None:
    """Runs a command whose calls of the core are recorded."""
    python_in(folder, "-m", "wiretale", *words)


def python_in(folder: Path, *words: object) -> None:
    done = subprocess.run([sys.executable, *map(str, words)], env=recording(folder), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def recording(folder: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(RECORDER), "RECORDED_CORE": str(folder / "calls")}


def view(folder: Path, *words: object) -> None:
    """Opens a page, and ends it as Ctrl-C does."""
    command = [sys.executable, "-m", "wiretale", "view", *map(str, words)]
    with subprocess.Popen(command, env=recording(folder), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stdout.readline().startswith("http://")
        process.send_signal(signal.SIGINT)


def api(folder: Path, function: str) -> None:
    keywords = {keyword_of(name): value for name, value in VALUES.items()}
    python_in(folder, "-c", f"import wiretale; wiretale.{function}({str(CAPTURE)!r}, **{keywords!r})")


def watch(folder: Path) -> None:
    (folder / "captures").mkdir()
    (folder / "captures" / CAPTURE.name).write_bytes(CAPTURE.read_bytes())
    wiretale_in(folder, "watch", folder / "captures", "--store", folder / "store", "--once", *flags())


def output_folder(folder: Path) -> None:
    wiretale_in(folder, "analyze", CAPTURE, "-o", folder / "out", *flags())
    (folder / "calls").unlink()
    view(folder, folder / "out")


WAYS: dict[str, Callable[[Path], None]] = {
    "analyze": lambda folder: wiretale_in(folder, "analyze", CAPTURE, "--json", *flags()),
    "view": lambda folder: view(folder, CAPTURE, *flags()),
    "view of an output folder": output_folder,
    "wiretale.analyze": lambda folder: api(folder, "analyze"),
    "wiretale.explain": lambda folder: api(folder, "explain"),
    "store": lambda folder: wiretale_in(folder, "store", "add", folder / "store", CAPTURE, *flags()),
    "watch": watch,
    "cluster": lambda folder: wiretale_in(
        folder, "analyze", CAPTURE, "--json", "--cluster", "local", "--workers", 1, "--shards", 1, *flags()
    ),
}


@pytest.fixture(scope="module", params=WAYS)
def calls(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[dict[str, Any]]]:
    """A way on which options are given, all at once, and the options of each call of the core."""
    if request.param == "cluster":
        pytest.importorskip("distributed")
    folder = tmp_path_factory.mktemp("options")
    WAYS[request.param](folder)
    return request.param, [json.loads(line) for line in (folder / "calls").read_text().splitlines()]


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_reaches_the_core(calls: tuple[str, list[dict[str, Any]]], name: str) -> None:
    way, core_calls = calls
    if way == "view of an output folder" and name not in CHANGING:
        pytest.skip("the folder keeps what its rows depend on")
    values = {call["call"]: call[name] for call in core_calls}
    if way == "cluster":  # packets are chosen when captures are cut, other options are of the shards
        assert values["split" if name in CHOOSING else "analysis"] == VALUES[name]
    else:
        assert [value for value in values.values() if value != DEFAULTS[name]] == [VALUES[name]]


def test_the_core_takes_each_field() -> None:
    """A field without its line in options.h would have no effect."""

    class Probe(tuple[Any, ...]):
        def __init__(self, values: tuple[Any, ...]) -> None:
            self.record, self.names = values, set[str]()

        def __getattr__(self, name: str) -> Any:
            self.names.add(name)
            return getattr(self.record, name)

    options, mode = Probe(NO_OPTIONS), Probe(ReadingMode())
    _core.Analysis([str(CAPTURE)], [str(CAPTURE)], options, mode)  # type: ignore[arg-type]
    assert (options.names, mode.names) == (set(AnalysisOptions._fields), set(ReadingMode._fields))


def test_each_option_is_a_keyword_with_its_type() -> None:
    assert list(AnalysisKeywords.__annotations__) == list(map(keyword_of, OPTIONS))
    keywords, fields = get_type_hints(AnalysisKeywords), get_type_hints(AnalysisOptions)
    for name, option in OPTIONS.items():
        assert option.kind == "time" or keywords[keyword_of(name)] == fields[name]


def test_a_keyword_that_is_no_option_is_an_error() -> None:
    with pytest.raises(TypeError, match="no option 'max_flow'"):
        wiretale.analyze(CAPTURE, max_flow=3)  # type: ignore[call-arg]


@pytest.mark.parametrize("name", [name for name in OPTIONS if OPTIONS[name].kind in ("count", "size")])
def test_bounds_are_those_of_the_declaration(wiretale_run: Any, name: str) -> None:
    option = OPTIONS[name]
    for wrong in (option.least - 1, option.most + 1):
        with pytest.raises(wiretale.UsageError, match=f"^{keyword_of(name)} {wrong}: expected {option.least} to "):
            wiretale.analyze(CAPTURE, **{keyword_of(name): wrong})  # type: ignore[arg-type]
        done = wiretale_run("analyze", CAPTURE, option.long_flag, wrong)
        assert done.returncode == 2 and f"{option.long_flag} '{wrong}': expected" in done.stderr.replace(
            ": -1", " '-1'"
        )


def test_a_record_comes_back_from_json() -> None:
    record = AnalysisOptions(**VALUES)
    assert AnalysisOptions.from_json(json.loads(json.dumps(record._asdict()))) == record
    assert AnalysisOptions.from_json(record.row_options()) == record._replace(
        **{name: DEFAULTS[name] for name in OPTIONS.keys() - CHANGING}
    )
