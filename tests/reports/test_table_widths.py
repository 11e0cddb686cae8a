# SPDX-License-Identifier: Apache-2.0
"""Tables of the terminal at every width from 60 to 200 columns: each cell is there to its last letter.

The tables of commands over all samples are recorded once, and laid out anew for each width. Rich draws each layout once: what it
draws follows from the widths of the columns.
"""

from __future__ import annotations

import io
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from rich.console import Console, RenderableType
from rich.table import Table as Grid
from rich.text import Text

import needs
from checkout import CAPTURES, SAMPLES
from wiretale.cli import main
from wiretale.reports.terminal import analyze, fitted, lab, model
from wiretale.reports.terminal.fitted import Column, row_lines

pytestmark = [pytest.mark.xdist_group("widths"), pytest.mark.filterwarnings("ignore::wiretale.DamagedInputWarning")]

WIDTHS = range(60, 201)
RULE = re.compile(r"[\s─]+")
PAIR = (SAMPLES / "tcp_losses.pcap", SAMPLES / "timeouts.pcap")
Model = tuple[Sequence[Column], Sequence[Sequence[Text]]]
AGREEMENT = {"session": "transfer of 10.0.0.1", "measure": "gaps", "original": 12_345, "rerun": 12_000, "agrees": False}
MEANS = {"original_mean": 1e6, "rerun_mean": 2e6, "resolution_ns": 250_000, "distance": 0.123, "p": 0.001}
FIDELITY = {"error_ns_p99": 5, "error_ns_max": 9, "valid": True, "bound_ns_p99": 1, "bound_ns_max": 2}
LAB_ROW = {
    "case": "a case of a plan with more than 23 letters",
    "published": {},
    "as_published": {"latency": False},
    "fidelity": {**FIDELITY, "overruns": 0, "restamped": 0},
    **{measured: 12_345.678 for _, measured, _, _ in lab.FIGURES},
}


def letters(text: str) -> str:
    return RULE.sub("", text)


def drawn(part: RenderableType, width: int) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, highlight=False, emoji=False, markup=False).print(part)
    return out.getvalue().splitlines()


def assert_cells_are_complete(grid: Grid, width: int) -> None:
    """Each column, read from top to bottom, is its head and its cells."""
    lines, left = drawn(grid, width), 0
    for column in grid.columns:
        assert column.width is not None
        column_lines = [line[left : left + column.width] for line in lines]
        cells = [column.header, *column.cells]
        assert letters("".join(column_lines)) == letters(
            "".join(cell.plain for cell in cells if isinstance(cell, Text))
        )
        left += column.width + fitted.GAP
    assert left - fitted.GAP <= width


def assert_rows_are_complete(columns: Sequence[Column], rows: Sequence[Sequence[Text]], width: int) -> None:
    """Without a table, each row is a list of all its values."""
    for row in rows:
        printed = letters("".join(drawn(row_lines(columns, row), width)))
        assert all(letters(cell.plain) in printed for cell in row)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., list[Model]]]:
    """Returns a function that runs a command and returns the tables that it printed."""
    models: list[Model] = []

    def record(columns: Sequence[Column], rows: Sequence[Sequence[Text]], width: int) -> Grid | None:
        models.append((columns, rows))
        return table(columns, rows, width)

    def run(*words: str | Path) -> list[Model]:
        models.clear()
        assert main(list(map(str, words))) in (0, 1, 3)
        return list(models)

    table = fitted.table
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitted, "table", record)
        patch.setattr(analyze, "table", record)
        yield run


def check(models: Sequence[Model]) -> None:
    assert models
    for columns, rows in models:
        layouts = set()
        for width in WIDTHS:
            grid = fitted.table(columns, rows, width)
            layout = grid and tuple(column.width for column in grid.columns)
            if layout in layouts:
                continue
            layouts.add(layout)
            if grid is None:
                assert_rows_are_complete(columns, rows, width)
            else:
                assert_cells_are_complete(grid, width)


@pytest.mark.parametrize("sample", CAPTURES, ids=lambda path: path.stem)
def test_flows(recorded: Callable[..., list[Model]], sample: Path) -> None:
    if models := recorded("analyze", sample, "--all"):
        check(models)


def test_flows_of_many_captures(recorded: Callable[..., list[Model]]) -> None:
    check(recorded("analyze", *CAPTURES, "--flows", "50"))


def test_two_captures_and_two_runs(recorded: Callable[..., list[Model]], tmp_path: Path) -> None:
    check(recorded("compare", PAIR[0], shutil.copy(PAIR[0], tmp_path / "receiver.pcap")))
    check(recorded("diff", *PAIR))


def test_theory(recorded: Callable[..., list[Model]]) -> None:
    check(recorded("theory", "--link", "100M", "--block", "8192"))


def test_a_store(recorded: Callable[..., list[Model]], tmp_path: Path) -> None:
    store = tmp_path / "store"
    recorded("store", "add", store, *PAIR)
    check(recorded("store", "query", store, "SELECT * FROM flows"))
    check(recorded("store", "top", store))
    check(recorded("diff", "--store", store, PAIR[0]))


def test_verdicts_beside_wireshark(recorded: Callable[..., list[Model]]) -> None:
    needs.skip_without(needs.programs("tshark"))
    check(recorded("verify", PAIR[0], SAMPLES / "reordering.pcap"))


def test_results_of_a_model_and_of_a_lab(recorded: Callable[..., list[Model]]) -> None:
    check([(model.COLUMNS, [model.cells({**AGREEMENT, **MEANS})])])
    check([(lab.COLUMNS, [list(map(Text, lab.figures_of(LAB_ROW)))])])


def test_a_column_without_a_cell_is_left_out() -> None:
    columns = (Column("a"), Column("b", True), Column("c"))
    table = drawn(fitted.fitted(columns, [("x", "", ""), ("y", "", "z")], 60), 60)
    assert [line.split() for line in table if not RULE.fullmatch(line)] == [["a", "c"], ["x"], ["y", "z"]]
    assert not [line for line in drawn(fitted.fitted(columns, [("x", "", "")], 60), 60) if "c" in line]
