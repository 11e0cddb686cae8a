# SPDX-License-Identifier: Apache-2.0
"""The Python interface as users have it: examples of the docstrings, tables as sequences, results, errors and warnings."""

from __future__ import annotations

import doctest
import gc
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import needs
import wiretale.analyzer
import wiretale.reports
import wiretale.traffic
from checkout import SAMPLES
from sample_sets import FEW_SAMPLES
from wiretale.analyzer.compare import rows as compare_rows
from wiretale.analyzer.table import KEPT_TABLES

LOSSES = SAMPLES / "tcp_losses.pcap"
UNUSUAL = ("check_readable",)
PUBLIC = sorted({*wiretale.__all__} - {"__version__"})
# Those that a user calls; what an attribute is, its class shows.
CALLED = [
    getattr(owner, name)
    for owner in (wiretale.Flow, wiretale.QueryResult, wiretale.Store, wiretale.Table, wiretale.Trace)
    for name in vars(owner)
    if not name.startswith("_") and name not in UNUSUAL and callable(getattr(owner, name))
]
MODULES = sorted({"wiretale", *(getattr(wiretale, name).__module__ for name in PUBLIC)})
LIBRARIES = {"_polars(": "polars", ".pl()": "polars", "_arrow(": "pyarrow", ".arrow()": "pyarrow"}
LIBRARIES |= {"_pandas(": "pandas", ".df()": "pandas"}
LIBRARIES |= {".scapy(": "scapy", ".pyshark(": "pyshark", ".frame(": "pyshark"}
DROPPED = 90  # a segment that the sender retransmits, and that the copy at the receiver lacks


def without_record(capture: bytes, number: int) -> bytes:
    """Returns a pcap file without one of its records."""
    place = 24
    for _ in range(number - 1):
        place += 16 + int.from_bytes(capture[place + 8 : place + 12], "little")
    return capture[:place] + capture[place + 16 + int.from_bytes(capture[place + 8 : place + 12], "little") :]


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the samples and two captures of one transfer, in which the examples run."""
    (tmp_path / "sample_pcaps").symlink_to(SAMPLES)
    sent = LOSSES.read_bytes()
    (tmp_path / "sender.pcap").write_bytes(sent)
    (tmp_path / "receiver.pcap").write_bytes(without_record(sent, DROPPED))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings_are_true(name: str, places: Path) -> None:
    runner = doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF)
    for test in doctest.DocTestFinder().find(importlib.import_module(name)):
        missing = [
            library
            for call, library in LIBRARIES.items()
            if call in (test.docstring or "") and not is_installed(library)
        ]
        if not missing or "sys.modules" in (test.docstring or ""):
            with ThreadPoolExecutor(1) as thread:  # a browser of other tests has an event loop in this one
                thread.submit(runner.run, test).result()
            with warnings.catch_warnings(action="ignore", category=ResourceWarning):
                gc.collect()  # pyshark leaves processes of which asyncio warns, in whatever test comes next
    assert runner.summarize().failed == 0 and runner.summarize().attempted >= 2


def is_installed(library: str) -> bool:
    """Whether an optional library is installed."""
    return importlib.util.find_spec(library) is not None


def test_every_public_name_has_an_example() -> None:
    assert [name for name in PUBLIC if ">>>" not in (getattr(wiretale, name).__doc__ or "")] == []
    assert [function.__qualname__ for function in CALLED if ">>>" not in (function.__doc__ or "")] == []


def test_rows_of_a_comparison_have_the_columns_of_their_types(places: Path) -> None:
    comparison = wiretale.compare("sender.pcap", "receiver.pcap")
    samples: list[tuple[Any, Any]] = [
        (comparison.flows[0], compare_rows.ComparedFlowRow),
        (comparison.lost_packets[0], compare_rows.LostPacketRow),
        (comparison.points[0].interfaces[0], compare_rows.CaptureInterface),
        (comparison.delays[0].summary, compare_rows.DelaySummary),
        (comparison.delays[0].series[0], compare_rows.DelayBin),
    ]
    for row, declared in samples:
        assert declared.__required_keys__ <= row.keys() <= declared.__annotations__.keys()


def test_a_time_has_one_type_in_sql_and_in_data_frames() -> None:
    trace = wiretale.analyze(LOSSES)
    result = trace.query("SELECT first_ns, epoch_ns(last_ns) - epoch_ns(first_ns) AS lasted FROM flows")
    row = trace.flows[0]
    assert result.fetchall() == [(datetime.fromtimestamp(row["first_ns"] / 1e9, UTC), row["last_ns"] - row["first_ns"])]
    if is_installed("pandas") and is_installed("pyarrow"):
        assert result.df().dtypes["first_ns"] == trace.flows.to_pandas().dtypes["first_ns"]
    if is_installed("polars") and is_installed("pyarrow"):
        assert result.pl().schema["first_ns"] == trace.flows.to_polars().schema["first_ns"]
    with pytest.raises(wiretale.UsageError, match=r"Use epoch_ns\(\)"):
        trace.query("SELECT last_ns - first_ns FROM flows")


def test_a_store_watches_a_folder_and_a_view_needs_files(places: Path) -> None:
    (places / "ring").mkdir()
    (places / "ring" / "0.pcap").write_bytes(LOSSES.read_bytes())
    store = wiretale.Store(places / "archive")
    assert store.watch(places / "ring") and store.query("SELECT packets FROM flows", limit=1).rows == [(342,)]
    (places / "ring" / "1.pcap").write_bytes(b"no capture at all, but a name that says so")
    assert not store.watch(places / "ring")
    with pytest.raises(wiretale.UsageError, match="expected files"), wiretale.view("-"):
        pass
    with pytest.raises(wiretale.InputError, match="No such file"), wiretale.view(places / "none.pcap"):
        pass
    with pytest.raises(wiretale.UsageError, match="SELECT"):
        store.query("DROP TABLE flows")
    with pytest.raises(wiretale.InputError):
        wiretale.Store(places / "none").query("FROM flows")


def test_an_import_is_light() -> None:
    assert sorted(wiretale.__all__) == dir(wiretale)
    script = "import sys, wiretale; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    heavy = ("duckdb", "plotly", "rich", "jinja2", "polars", "pandas", "pyarrow", "wiretale.analyzer", "wiretale.api")
    assert not set(heavy) & set(loaded)


@FEW_SAMPLES
def test_tables_are_sequences_of_rows(sample: Path) -> None:
    trace = wiretale.analyze(sample)
    for name in KEPT_TABLES:
        table = trace.table(name)
        rows = table.rows()
        assert list(table) == rows and len(table) == len(rows)
        for part in (slice(None), slice(2, 5), slice(-3, None), slice(None, None, -1), slice(9, 1, -3), slice(7, 7)):
            assert table[part] == rows[part]
        for number in {0, len(rows) // 2, len(rows) - 1} if rows else ():
            assert table[number] == rows[number] and table[number - len(rows)] == rows[number]
        for number in (len(rows), -len(rows) - 1):
            with pytest.raises(IndexError):
                table[number]
        assert {column: table[column] for column, *_ in table.columns()} == {
            column: [row[column] for row in rows] for column, *_ in table.columns()
        }
    with pytest.raises(KeyError):
        trace.flows["nothing"]


def test_a_loop_over_a_long_table_has_each_row_once() -> None:
    events = wiretale.analyze(LOSSES, keep_packets=True).packets()
    assert [row["frame"] for row in events] == events["frame"]


@FEW_SAMPLES
def test_every_table_becomes_that_of_other_libraries(sample: Path) -> None:
    pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    pytest.importorskip("pandas")
    trace = wiretale.analyze(sample)
    for name in KEPT_TABLES:
        table = trace.table(name)
        columns = [column for column, *_ in table.columns()]
        polars, pandas, arrow = table.to_polars(), table.to_pandas(), table.to_arrow()
        assert polars.columns == list(pandas.columns) == arrow.column_names == columns
        assert len(polars) == len(pandas) == len(arrow) == len(table)
        for column, kind, *_ in table.columns():
            if kind in ("int", "word", "text"):
                assert polars[column].to_list() == arrow[column].to_pylist() == table[column]


@pytest.mark.parametrize("method", ["polars", "pandas", "arrow"])
def test_a_missing_library_is_named(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = {"arrow": "pyarrow"}.get(method, method)
    monkeypatch.setitem(sys.modules, name, None)  # an import of it fails
    with pytest.raises(wiretale.MissingToolError, match=rf"^{name} is not installed: run `.* -m pip install {name}`$"):
        getattr(wiretale.analyze(LOSSES).flows, f"to_{method}")()


def test_times_are_datetimes_of_any_zone() -> None:
    numpy = pytest.importorskip("numpy")
    pandas = pytest.importorskip("pandas")
    moment = datetime(2026, 1, 15, 12, 0, 0, 100_000, tzinfo=UTC)
    east = moment.astimezone(timezone(timedelta(hours=5, minutes=30)))
    plain = moment.replace(tzinfo=None)
    stamps = (moment, east, plain, pandas.Timestamp(moment), numpy.datetime64(plain), 1_768_478_400_100_000_000)
    times = wiretale.analyze(LOSSES).packets()["time_ns"]
    for stamp in stamps:
        after, before = wiretale.analyze(LOSSES, start=stamp), wiretale.analyze(LOSSES, end=stamp)
        assert after.packets()["time_ns"] == [ns for ns in times if ns >= stamps[-1]] != times
        assert before.packets()["time_ns"] == [ns for ns in times if ns < stamps[-1]] != []


def test_inputs_may_be_lists(tmp_path: Path) -> None:
    files = [LOSSES, str(SAMPLES / "timeouts.pcap"), os.fsencode(SAMPLES / "vlan_ipv6.pcap")]
    apart = wiretale.analyze(*files)
    for together in ([files], [tuple(files)], [files[:1], *files[1:]], [*files]):
        assert wiretale.analyze(*together).flows.rows() == apart.flows.rows()
    wrong: Any = [[[LOSSES]], [3], None, 3]
    for argument in wrong:
        with pytest.raises(wiretale.UsageError, match="expected a path, or a list of paths"):
            wiretale.analyze(argument)


def test_errors_are_those_of_python_too(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"nothing\.pcap: No such file") as missing_file:
        wiretale.analyze(tmp_path / "nothing.pcap")
    assert isinstance(missing_file.value, wiretale.InputError) and missing_file.value.exit_code == 4
    with pytest.raises(ValueError, match="filter") as wrong:
        wiretale.analyze(LOSSES, filter="(")
    assert isinstance(wrong.value, wiretale.UsageError) and wrong.value.exit_code == 2
    with pytest.raises(OSError, match="cannot write") as full:
        wiretale.analyze(LOSSES).report(tmp_path / "no" / "folder.html")
    assert isinstance(full.value, wiretale.OutputError) and full.value.exit_code == 4


def test_an_error_in_a_log_keeps_its_text(tmp_path: Path, wiretale_run: Any) -> None:
    log = tmp_path / "large.json"
    with log.open("wb") as file:
        file.truncate(2**31)
    done = wiretale_run("compare", LOSSES, "--receiver-log", log)
    assert done.returncode == 4 and "expected a log of wiretale send" in done.stderr


def test_damage_is_a_warning_at_the_line_of_the_caller(wiretale_run: Any) -> None:
    damaged = SAMPLES / "damaged.pcap"
    calls: tuple[Any, ...] = (wiretale.analyze, wiretale.explain, lambda path: wiretale.diff(path, LOSSES))
    for call in calls:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            call(damaged)
        (warning,) = seen
        assert warning.category is wiretale.DamagedInputWarning and warning.filename == __file__
        assert str(warning.message).startswith(f"{damaged}: at byte 6220")
    done = wiretale_run("analyze", damaged, "-q")
    assert done.returncode == 3 and done.stderr.count("\n") == 1 and "Warning" not in done.stderr


def rounded(value: Any) -> Any:
    """A JSON value with six digits of each number: DuckDB sums in the order of its threads."""
    if isinstance(value, dict):
        return {name: rounded(member) for name, member in value.items()}
    if isinstance(value, list):
        return [rounded(member) for member in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def test_results_are_the_objects_and_the_text_of_the_commands(
    places: Path, wiretale_run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    pairs = [
        (wiretale.explain(LOSSES, link="100M"), ("analyze", LOSSES, "--link", "100M")),
        (wiretale.compare("sender.pcap", "receiver.pcap"), ("compare", "sender.pcap", "receiver.pcap")),
        (wiretale.diff("sender.pcap", "receiver.pcap"), ("diff", "sender.pcap", "receiver.pcap", "--all")),
        (wiretale.theory("1G", 9000, block="64KiB"), ("theory", "--link", "1G", "--mtu", "9000", "--block", "64KiB")),
    ]
    for result, words in pairs:
        printed = json.loads(wiretale_run(*words, "--json").stdout)
        assert rounded(json.loads(json.dumps(result.as_dict()))) == rounded(printed)
        text = wiretale_run(*words, env={"COLUMNS": "160"}).stdout
        assert str(result) == repr(result) == text.rstrip("\n")


def test_verify_returns_each_difference() -> None:
    needs.skip_without(needs.programs("tshark"))
    verification = wiretale.verify(SAMPLES / "fast_retransmissions.pcap")
    assert (
        verification.kinds["fast_retransmission"].both == 6
        and not verification.unexplained
        and verification.problem is None
    )
    assert {difference.frame for difference in verification.differences} >= {176, 365} and verification.as_dict()[
        "wireshark"
    ] == verification.wireshark
    assert len(wiretale.verify(SAMPLES / "fast_retransmissions.pcap", differences=1).differences) == 2


def test_compare_places_the_packet_that_is_missing(places: Path) -> None:
    comparison = wiretale.compare(Path("sender.pcap"), Path("receiver.pcap"))
    assert [ledger.lost for ledger in comparison.losses if ledger.lost] == [{"network": 1}]
    assert comparison.lost_packets_total == 1 and comparison.lost_packets[0]["sender_frame"] == DROPPED


def test_a_trace_can_be_compared_and_explained() -> None:
    trace = wiretale.analyze(LOSSES)
    assert wiretale.explain(trace).trace is trace
    assert wiretale.diff(trace, LOSSES).sentence.startswith("B is as fast as A")
    wrong: tuple[Any, ...] = ((trace, trace), (trace, LOSSES), ())
    for captures in wrong:
        with pytest.raises(wiretale.UsageError):
            wiretale.explain(*captures)
    with pytest.raises(wiretale.UsageError, match="without options"):
        wiretale.explain(trace, filter="tcp")


def test_a_flow_has_its_own_packets_and_findings() -> None:
    trace = wiretale.analyze(SAMPLES / "fast_retransmissions.pcap")
    for number, row in enumerate(trace.flows):
        flow = trace.flow(number)
        assert flow.row == row and [entry["flow"] for entry in flow.directions] == [number, number]
        assert len(flow.packets()) == row["packets"] and set(flow.packets()["flow"]) == {number}
        assert flow.findings() == [entry for entry in trace.findings if entry["flow"] == number]
    with pytest.raises(wiretale.UsageError, match="expected a number of the flows table"):
        trace.flow(len(trace.flows))


USER = """
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
import wiretale

trace = wiretale.analyze(["a.pcap", Path("b.pcap")], start=datetime(2026, 1, 1))
row: Mapping[str, object] = trace.flows[0]
rows: Sequence[Mapping[str, object]] = trace.flows[:2]
column: list[object] = trace.flows["packets"]
explanation: wiretale.Explanation = wiretale.explain(trace, link="1G")
rate: float | None = explanation.transfers[0].maximum_bps
lost: dict[str, int] = wiretale.compare("a", "b").losses[0].lost
percent: float | None = wiretale.diff(trace, "b").changes["goodput"].percent
payload: int = wiretale.theory("1G").tcp.payload_per_frame
both: int = wiretale.verify("a").kinds["gap"].both
"""


def test_programs_of_users_pass_mypy(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text(USER)
    package = tmp_path / "installed" / "wiretale"  # type checkers cannot follow an editable installation
    package.mkdir(parents=True)
    folders = [Path(module.__file__ or "").parent for module in (wiretale.analyzer, wiretale.reports, wiretale.traffic)]
    for part in {*Path(wiretale.__file__).parent.iterdir(), *folders}:
        (package / part.name).symlink_to(part)
    environment = {**os.environ, "MYPYPATH": str(package.parent)}
    options = ("--strict", "--follow-imports=silent", "--cache-dir", str(tmp_path / "cache"))
    command = [sys.executable, "-m", "mypy", *options, str(program)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.stdout.startswith("Success"), done.stdout
