# SPDX-License-Identifier: Apache-2.0
"""The SQL of a user reads the tables, and no file beside them; it writes none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wiretale
from processes import refusal
from wiretale.analyzer.errors import UsageError

READS = ("read_text('{0}')", "read_csv('{0}')", "glob('{0}*')", "'{0}'")
STATEMENTS = ("copy (select 1) to '{0}.csv'", "attach '{0}.db'", "install httpfs", "export database '{0}.out'")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("user files")
    (folder / "private").write_text("secret\n")
    yield folder
    assert {path.name for path in folder.iterdir()} <= {"private", "store"}


@pytest.fixture(scope="module")
def store(wiretale_run: Any, samples: Path, place: Path) -> Path:
    assert wiretale_run("store", "add", place / "store", samples / "tcp_losses.pcap").returncode == 0
    return place / "store"


@pytest.mark.parametrize("table", READS)
def test_a_store_reads_no_other_file(wiretale_run: Any, store: Path, place: Path, table: str) -> None:
    for path in (place / "private", f"{store}/../private"):
        text = refusal(wiretale_run("store", "query", store, f"select * from {table.format(path)}"), 2)
        assert "secret" not in text


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_store_takes_no_other_statement(wiretale_run: Any, store: Path, place: Path, statement: str) -> None:
    refusal(wiretale_run("store", "query", store, statement.format(place / "written")), 2)


def test_a_store_reads_its_own_files(wiretale_run: Any, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in (store, Path("store")):
        monkeypatch.chdir(store.parent)
        done = wiretale_run("store", "query", folder, "select count(*) as n from flows", "--json", cwd=store.parent)
        assert done.returncode == 0 and '"n": 1' in done.stdout, done.stderr


@pytest.mark.parametrize("sql", [*(f"select * from {table}" for table in READS), *STATEMENTS])
def test_a_trace_reads_and_writes_no_file(samples: Path, place: Path, sql: str) -> None:
    trace = wiretale.analyze(samples / "tcp_losses.pcap")
    with pytest.raises(UsageError) as error:
        trace.query(sql.format(place / "private")).fetchall()
    assert "\n" not in str(error.value)


def test_a_trace_has_its_tables(samples: Path) -> None:
    trace = wiretale.analyze(samples / "tcp_losses.pcap")
    assert trace.query("select packets from flows").fetchall() == [(342,)]
    assert trace.query("select count(*) from packets").fetchall() == [(342,)]
