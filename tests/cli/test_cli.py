# SPDX-License-Identifier: Apache-2.0
"""The command line as a user meets it: exit codes, streams, bad input, Ctrl-C, closed pipes."""

from __future__ import annotations

import contextlib
import csv
import fcntl
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import pytest

import needs
import wiretale
from json_rows import with_values
from processes import refusal, small_disk, wait_until
from sample_sets import FEW_SAMPLES
from wiretale.analyzer.table import KEPT_TABLES

# There the sanitizer speaks up in every process that the test starts.

WIRETALE = [sys.executable, "-m", "wiretale"]


def one_line(text: str) -> bool:
    return text.startswith("wiretale: ") and text.count("\n") == 1 and "Traceback" not in text


def test_version_and_public_names(wiretale_run: Any) -> None:
    done = wiretale_run("--version")
    assert (done.returncode, done.stdout) == (0, f"wiretale {wiretale.__version__}\n")
    assert all(hasattr(wiretale, name) for name in wiretale.__all__)
    assert set(wiretale.__all__) <= set(dir(wiretale))
    with pytest.raises(AttributeError):
        _ = wiretale.nothing


@pytest.mark.parametrize("arguments", [["--version"], ["analyze", "FILE", "--json"], ["verify", "FILE", "--json"]])
def test_heavy_imports_are_left_out(samples: Path, arguments: list[str]) -> None:
    arguments = [str(samples / "tcp_losses.pcap") if a == "FILE" else a for a in arguments]
    code = (
        f"import sys; from wiretale.cli import main\ntry: main({arguments!r})\nexcept SystemExit: pass\n"
        "heavy = {'duckdb', 'plotly', 'rich', 'jinja2', 'asyncio'} & set(sys.modules)\n"
        "print(sorted(heavy), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"


def test_the_core_waits_for_no_import_that_it_does_without() -> None:
    code = (
        "import sys; before = set(sys.modules); from wiretale.cli import make_parser; make_parser('analyze')\n"
        "import wiretale.analyzer.trace; print(sorted({'shutil', 'lzma', 'textwrap'} & set(sys.modules) - before))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("file, code", [("tcp_losses.pcap", 0), ("damaged.pcap", 3)])
def test_the_program_ends_with_all_written_and_every_handler_run(samples: Path, file: str, code: int) -> None:
    source = (
        "import atexit, sys; from wiretale.cli import command\n"
        "atexit.register(lambda: (print('first', file=sys.stderr), sys.stdout.write('tail'), sys.stdout.flush()))\n"
        "atexit.register(lambda: sys.stderr.write('second'))\n"
        f"sys.argv = ['wiretale', 'analyze', {str(samples / file)!r}, '--json']; command()"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert done.returncode == code and done.stderr.endswith("secondfirst\n")
    assert json.loads(done.stdout.removesuffix("tail"))["schema"] and done.stdout.endswith("}\ntail")


def test_output_before_an_interruption_is_written() -> None:
    source = (
        "import atexit; from wiretale import cli\n"
        "def interrupted(command, arguments): print('row'); raise KeyboardInterrupt\n"
        "cli.run = interrupted; atexit.register(lambda: print('tail')); cli.sys.argv = ['wiretale', 'doctor']; cli.command()"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "row\ntail\n", "wiretale: interrupted\n")


def test_imports_wait_where_no_thread_can_be_started(samples: Path) -> None:
    source = (
        "import sys, threading\n"
        'def start(thread): raise RuntimeError("can\'t start new thread")\n'
        "threading.Thread.start = start; from wiretale.cli import command\n"
        f"sys.argv = ['wiretale', 'analyze', {str(samples / 'tcp_losses.pcap')!r}, '--json']; command()"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "") and json.loads(done.stdout)["findings"]


def test_exit_codes(wiretale_run: Any, samples: Path, tmp_path: Path) -> None:
    good, damaged = samples / "tcp_losses.pcap", samples / "damaged.pcap"
    text = tmp_path / "notes.txt"
    text.write_text("this is no capture\n")
    expected = {
        (good,): 0,
        (good, "--json"): 0,
        (damaged,): 3,
        (damaged, "--json"): 3,
        (text,): 4,
        (text, "--json"): 4,
        (tmp_path / "nothing.pcap",): 4,
        (tmp_path,): 4,
        (good, "--filter", "nonsense("): 2,
        (good, "--start", "yesterday"): 2,
        (good, "--tables", "nothing", "--json"): 2,
        (good, "--max-flows", "0"): 2,
        (good, "--start", "9999-01-01"): 2,
        (good, "--end", "-9999999999"): 2,
        (good, "--start", "2026-01-02", "--end", "2026-01-01"): 2,
        (good, "--tables", "flows"): 2,
        (good, "--json", "--csv"): 2,
        (good, "--json", "--report", "-"): 2,
        (good, "--csv", "--tables", "flows,events"): 2,
        (good, good): 2,
        (good, "-o", good): 4,
        (good, "--report", tmp_path / "nowhere" / "x.html"): 4,
        (): 2,
    }
    for arguments, code in expected.items():
        done = wiretale_run("analyze", *arguments)
        assert done.returncode == code, (arguments, done.stderr)
        assert one_line(done.stderr) if code else not done.stderr, (arguments, done.stderr)


def test_wrong_commands_are_one_line(wiretale_run: Any) -> None:
    assert wiretale_run().stdout == wiretale_run("--help").stdout
    for arguments in (("analyse", "x.pcap"), ("info",), ("doctor", "--no-such-option")):
        done = wiretale_run(*arguments)
        assert done.returncode == 2 and one_line(done.stderr), done.stderr
        assert "--help`" in done.stderr and not done.stdout


def test_json_is_one_object_with_every_table_asked_for(wiretale_run: Any, sample: Path) -> None:
    document = json.loads(wiretale_run("analyze", sample, "--json").stdout)
    assert document["schema"] == "wiretale.analyze/3" and document["wiretale"] == wiretale.__version__
    for name in ("interfaces", "flows", "directions", "datagrams", "blocks_summary", "findings"):
        assert isinstance(document[name], list)
    trace = wiretale.analyze(sample)
    assert document["flows"] == with_values(trace.flows.rows())
    assert document["directions"] == with_values(trace.directions.rows())
    other = json.loads(wiretale_run("analyze", sample, "--json", "--tables", "series,events,packets").stdout)
    assert other["series"] == with_values(trace.series.rows()) and "flows" not in other


def test_lines_have_what_is_not_null(wiretale_run: Any, samples: Path) -> None:
    trace = wiretale.analyze(samples / "timeouts.pcap")
    for name, rows in (("flows", trace.flows.rows()), ("packets", trace.packets().rows()), ("groups", [])):
        done = wiretale_run(samples / "timeouts.pcap", "--jsonl", name)
        known = [{column: value for column, value in row.items() if value is not None} for row in rows]
        assert [json.loads(line) for line in done.stdout.splitlines()] == known and done.returncode == 0


def test_columns_are_those_asked_for(wiretale_run: Any, samples: Path) -> None:
    capture, columns = samples / "timeouts.pcap", ("--columns", "state,flow")
    few = [{"state": row["state"], "flow": row["flow"]} for row in wiretale.analyze(capture).flows.rows()]
    lines = wiretale_run(capture, "--jsonl", "flows", *columns).stdout.splitlines()
    assert [json.loads(line) for line in lines] == few
    assert json.loads(wiretale_run(capture, "--json", "--tables", "flows", *columns).stdout)["flows"] == few
    table = list(csv.DictReader(wiretale_run(capture, "--csv", *columns).stdout.splitlines()))
    assert table == [{name: str(value) for name, value in row.items()} for row in few] and list(table[0]) == [
        "state",
        "flow",
    ]
    assert wiretale_run(capture, "--csv", "--columns", "flow").stdout.split() == ["flow", "0", "1", "2"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("--columns flow", "--columns needs one table"),
        ("--json --columns flow", "--columns needs one table"),
        ("--jsonl flows --columns stat", "--columns stat: expected a column of flows"),
        ("--jsonl flows,events", "expected one table"),
        ("--jsonl flows --json", "use only one"),
        ("--jsonl flows --cause tail-loss", "it takes no --cause"),
        ("--csv --top 1", "it takes no --top"),
        ("--jsonl flows -o there", "takes no --tables and no -o DIR"),
    ],
)
def test_columns_and_lines_are_of_one_table(wiretale_run: Any, samples: Path, words: str, reason: str) -> None:
    done = wiretale_run(samples / "timeouts.pcap", *words.split())
    assert done.returncode == 2 and reason in done.stderr and not done.stdout


def test_standard_input_is_a_capture(wiretale_run: Any, samples: Path) -> None:
    with (samples / "tcp_losses.pcap").open("rb") as file:
        done = wiretale_run("analyze", "-", "--json", stdin=file)
    assert json.loads(done.stdout)["interfaces"][0]["file"] == "-"
    assert json.loads(done.stdout)["totals"]["packets"] == 342


def test_a_folder_stands_for_its_captures(wiretale_run: Any, samples: Path) -> None:
    document = json.loads(wiretale_run("analyze", samples, "--json").stdout)
    assert len({row["file"] for row in document["interfaces"]}) == len(list(samples.rglob("*.pcap*")))


def test_many_files_are_summed_up(wiretale_run: Any, samples: Path, tmp_path: Path) -> None:
    for number in range(30):
        shutil.copy(samples / "vlan_ipv6.pcap", tmp_path / f"{number}.pcap")
    text = wiretale_run("analyze", tmp_path, "--all").stdout
    assert text.count(".pcap\n") == 8
    assert "and 22 more input interfaces: 1,980 packets" in text


def test_a_closed_pipe_ends_quietly(samples: Path) -> None:
    arguments = [
        *WIRETALE,
        "analyze",
        str(samples / "fast_retransmissions.pcap"),
        "--json",
        "--tables",
        "series,packets",
    ]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as writer:
        assert writer.stdout and writer.stderr
        assert writer.stdout.read(10) == b'{"schema":'
        writer.stdout.close()
        assert writer.stderr.read() == b""
    assert writer.returncode == 0


def test_a_closed_pipe_costs_no_file(samples: Path, tmp_path: Path) -> None:
    capture, out = samples / "tcp_losses.pcap", tmp_path / "out"
    arguments = [*WIRETALE, "analyze", str(capture), "--json", "--tables", "packets", "-o", str(out), "-q"]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(arguments, stdout=writing, stderr=subprocess.PIPE, check=False, text=True)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")
    assert {"report.html", "flows.parquet"} <= {path.name for path in out.iterdir()}


def piped_code(*words: object) -> int:
    """Returns the exit code of a command whose stdout and stderr are a pipe without a reader."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        return subprocess.run([*WIRETALE, *map(str, words)], stdout=writing, stderr=writing, check=False).returncode
    finally:
        os.close(writing)


def test_a_closed_pipe_changes_no_exit_code(samples: Path, tmp_path: Path) -> None:
    before, after = samples / "tcp_losses.pcap", samples / "timeouts.pcap"
    assert piped_code("diff", before, after, "--fail-if", "goodput<-5%") == 1
    assert piped_code("diff", before, after, "--fail-if", "goodput<-99%") == 0
    assert piped_code("analyze", before, "--no-such-option") == 2
    damaged = tmp_path / "damaged.pcap"
    damaged.write_bytes(before.read_bytes()[:-1])
    assert piped_code("analyze", damaged, "-o", tmp_path / "out") == 3
    assert {"report.html", "flows.parquet"} <= {path.name for path in (tmp_path / "out").iterdir()}
    assert piped_code("store", "add", tmp_path / "store", tmp_path / "none.pcap") == 4
    assert piped_code("cut", before, "--frames", "1", "-o", "-") == 0


def test_a_closed_pipe_hides_no_full_disk(samples: Path, tmp_path: Path) -> None:
    needs.skip_without(needs.mounts())
    with small_disk(tmp_path / "disk", "size=100k") as disk:
        assert piped_code("analyze", samples / "tcp_losses.pcap", "-o", disk / "out") == 4
        assert not (disk / "out" / "report.html").exists()


@pytest.mark.parametrize("command", [("analyze", "FILE"), ("info", "FILE"), ("doctor",), ("--help",)])
def test_any_locale_is_written_to(wiretale_run: Any, samples: Path, command: tuple[str, ...]) -> None:
    arguments = [samples / "vlan_ipv6.pcap" if word == "FILE" else word for word in command]
    done = wiretale_run(*arguments, env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode in (0, 5) and done.stdout.isascii() and done.stdout
    assert not done.stderr


@needs.marked(needs.plain_processes())
@pytest.mark.parametrize(
    "words",
    [
        "analyze FILE",
        "analyze FILE --json",
        "analyze FILE --csv",
        "analyze FILE --report -",
        "analyze FILE -o DIR",
        "explain FILE",
        "info FILE",
        "theory --link 1G",
        "--help",
        "analyze --help",
        "--version",
    ],
)
def test_a_closed_output_is_an_error_and_costs_no_file(samples: Path, tmp_path: Path, words: str) -> None:
    places = {"FILE": str(samples / "vlan_ipv6.pcap"), "DIR": str(tmp_path)}
    command = shlex.join([*WIRETALE, *(places.get(word, word) for word in words.split())]) + " >&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    *written, problem = done.stderr.splitlines()
    assert (done.returncode, done.stdout, problem) == (4, "", "wiretale: standard output is closed")
    assert len(written) == 2 * ("DIR" in words) and (tmp_path / "report.html").exists() == ("DIR" in words)


@needs.marked(needs.plain_processes())
def test_a_closed_output_that_nothing_is_written_to_is_no_error(samples: Path, tmp_path: Path) -> None:
    page = tmp_path / "t.html"
    command = shlex.join([*WIRETALE, "analyze", str(samples / "vlan_ipv6.pcap"), "-q", "--report", str(page)])
    for closed in (">&-", "<&- >&-", "<&- >&- 2>&-"):
        done = subprocess.run(["sh", "-c", f"{command} {closed}"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "") and page.exists()
        page.unlink()


def test_a_report_on_stdout_is_the_report(samples: Path) -> None:
    for name in ("tcp_losses.pcap", "-"):
        arguments = [*WIRETALE, "analyze", name, "--report", "-"]
        with (samples / "tcp_losses.pcap").open("rb") as file:
            done = subprocess.run(arguments, stdin=file, capture_output=True, check=True, cwd=samples)
        assert done.stdout.startswith(b"<!doctype html>") and done.stdout.rstrip().endswith(b"</html>")
        assert not done.stderr and not (samples / "-").exists()


def test_standard_input_is_read_once_beside_files(samples: Path, tmp_path: Path) -> None:
    (tmp_path / "-").touch()
    with (samples / "tcp_losses.pcap").open("rb") as file:
        arguments = [*WIRETALE, "analyze", "-", "-q", "--report", "x.html"]
        subprocess.run(arguments, stdin=file, check=True, cwd=tmp_path)
    assert (tmp_path / "x.html").exists()


def test_a_full_disk_is_one_line(wiretale_run: Any, samples: Path, tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = wiretale_run(
            "analyze", samples / "tcp_losses.pcap", capture_output=False, stdout=full, stderr=subprocess.PIPE
        )
    assert done.returncode == 4 and one_line(done.stderr)


def test_a_full_disk_loses_nothing_that_was_good(wiretale_run: Any, samples: Path, tmp_path: Path) -> None:
    needs.skip_without(needs.mounts())
    with small_disk(tmp_path / "small", "size=300k") as small:
        (small / "report.html").write_text("good")
        done = wiretale_run("analyze", samples / "tcp_losses.pcap", "-q", "--report", small / "report.html")
        assert done.returncode == 4 and one_line(done.stderr)
        assert [path.name for path in small.iterdir()] == ["report.html"]
        assert (small / "report.html").read_text() == "good"
        done = wiretale_run("analyze", samples / "vlan_ipv6.pcap", "-q", "-o", small / "out")
        assert done.returncode == 4 and one_line(done.stderr)


def wait_idle(process: subprocess.Popen[str], pipe: int) -> None:
    """Until it has read all that the pipe had, and has nothing to do."""
    until, quiet = time.monotonic() + 60, 0
    while quiet < 3:
        assert time.monotonic() < until and process.poll() is None
        left = int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)
        state = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]
        quiet = quiet + 1 if state == "S" and not left else 0
        time.sleep(0.05)


def interrupt(samples: Path, pipe: Path, number: signal.Signals, *arguments: str) -> tuple[str, str]:
    """Signals a command that has read all packets of a pipe. Returns what it wrote to stdout and stderr."""
    os.mkfifo(pipe)
    reader = subprocess.Popen([*WIRETALE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with pipe.open("wb") as writer:
        writer.write((samples / "tcp_losses.pcap").read_bytes())
        writer.flush()
        wait_idle(reader, writer.fileno())
        reader.send_signal(number)
        out, err = reader.communicate(timeout=60)
    assert reader.returncode == 128 + number
    assert one_line(err)
    return out, err


@pytest.mark.parametrize(
    "words", ["", "analyze", "info", "diff FILE", "compare FILE", "store add DIR", "view", "verify"]
)
def test_a_scheme_that_is_not_read_is_one_line(wiretale_run: Any, samples: Path, tmp_path: Path, words: str) -> None:
    places = {"FILE": samples / "tcp_losses.pcap", "DIR": tmp_path / "store"}
    done = wiretale_run(*(places.get(word, word) for word in words.split()), "ftp://me:secret@host/a.pcap")
    problem = refusal(done)
    assert problem.startswith("ftp://…: expected a path") and ("ssh or sftp" in problem) == (
        words in ("", "analyze", "info", "diff FILE")
    )
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_the_reading_and_shows_the_results_so_far(
    samples: Path, tmp_path: Path, number: signal.Signals
) -> None:
    pipe = tmp_path / "pipe"
    out, err = interrupt(samples, pipe, number, "analyze", str(pipe), "--json")
    assert "interrupted: results cover 342 packets" in err
    assert json.loads(out)["interrupted"] is True and json.loads(out)["totals"]["packets"] == 342


def test_ctrl_c_while_the_command_is_imported_ends_quietly() -> None:
    """The import of argparse takes Ctrl-C here; a second one comes while the command ends."""
    source = (
        "import signal, sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == {module!r}: signal.raise_signal(signal.SIGINT)\n"
        "sys.modules.pop({module!r}, None); sys.meta_path.insert(0, Interrupting())\n"
        "sys.argv = ['wiretale', 'theory', '--link', '1G']\n"
        "from wiretale.cli import command; command()"
    )
    for module, message in (("argparse", ""), ("wiretale.cli.theory", "wiretale: interrupted\n")):
        command = [sys.executable, "-c", source.format(module=module)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (130, "", message)


def offset_in(process: subprocess.Popen[str], file: Path) -> int:
    """How far a process has read a file; -1 if it is not open."""
    offset = -1
    for descriptor in Path(f"/proc/{process.pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            if os.readlink(descriptor) == str(file):
                status = Path(f"/proc/{process.pid}/fdinfo", descriptor.name).read_text()
                offset = max(offset, int(status.split()[1]))
    return offset


def test_ctrl_c_ends_a_comparison_before_the_capture_is_read(samples: Path, tmp_path: Path) -> None:
    capture = (samples / "tcp_losses.pcap").read_bytes()
    large = tmp_path / "large.pcap"
    large.write_bytes(capture[:24] + capture[24:] * (150_000_000 // len(capture)))
    command = [*WIRETALE, "compare", str(large), str(samples / "tcp_losses.pcap")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: offset_in(process, large) > 4_000_000, "the capture is being read")
        process.send_signal(signal.SIGINT)
        most = 0
        while process.poll() is None:
            with contextlib.suppress(FileNotFoundError):  # the process has ended
                most = max(most, offset_in(process, large))
        assert process.stdout and process.stderr
        output = process.stdout.read(), process.stderr.read()
    assert (process.returncode, output) == (130, ("", "wiretale: interrupted\n"))
    assert most < large.stat().st_size / 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_was_read_in_part_is_not_compared(samples: Path, tmp_path: Path, number: signal.Signals) -> None:
    pipe = tmp_path / "pipe"
    out, err = interrupt(samples, pipe, number, "diff", str(pipe), str(samples / "timeouts.pcap"), "--json")
    assert out == "" and "interrupted" in err


@pytest.mark.parametrize("sample", ["damaged.pcap", "ip_fragments.pcap", "vxlan_loss.pcap", "two_interfaces.pcapng"])
def test_output_folder_holds_every_table_and_the_report(
    wiretale_run: Any, samples: Path, sample: str, tmp_path: Path
) -> None:
    import duckdb

    done = wiretale_run("analyze", samples / sample, "-o", tmp_path / "out", "--csv", "-q")
    assert done.returncode in (0, 3)
    names = {path.name for path in (tmp_path / "out").iterdir()}
    tables = list(KEPT_TABLES)
    assert names == {f"{t}.parquet" for t in tables} | {f"{t}.csv" for t in tables} | {"report.html"}
    trace = wiretale.analyze(samples / sample)
    for table in tables:
        kinds = {column: kind for column, kind, *_ in trace.table(table).columns()}
        columns = [f'epoch_ns("{c}")' if kind == "time" else f'"{c}"' for c, kind in kinds.items()]
        query = f"select {', '.join(columns)} from '{tmp_path}/out/{table}.parquet'"
        rows = [dict(zip(kinds, row, strict=True)) for row in duckdb.sql(query).fetchall()]
        assert rows == trace.table(table).rows(), table


def test_parquet_has_times_with_a_time_zone_and_words_as_dictionaries(
    wiretale_run: Any, samples: Path, tmp_path: Path
) -> None:
    import duckdb

    assert wiretale_run("analyze", samples / "timeouts.pcap", "-o", tmp_path, "-q").returncode == 0
    kind, physical = duckdb.sql(
        f"select logical_type, type from parquet_schema('{tmp_path}/events.parquet') where name = 'time_ns'"
    ).fetchall()[0]
    assert "isAdjustedToUTC=1" in kind and "NANOS=NanoSeconds" in kind and physical == "INT64"
    stored = duckdb.sql(
        f"select encodings from parquet_metadata('{tmp_path}/events.parquet') where path_in_schema = 'kind'"
    ).fetchall()
    assert "DICTIONARY" in stored[0][0]


def test_csv_on_stdout(wiretale_run: Any, samples: Path) -> None:
    lines = wiretale_run("analyze", samples / "vlan_ipv6.pcap", "--csv").stdout.splitlines()
    assert lines[0].startswith("flow,protocol,") and len(lines) == 8


def test_hostile_names_do_not_steer_the_terminal(wiretale_run: Any, samples: Path, tmp_path: Path) -> None:
    path = tmp_path / "[red]\x1b[31mname\x07.pcap"
    shutil.copy(samples / "damaged.pcap", path)
    for arguments in (("analyze", path), ("analyze", path, "--all"), ("info", path)):
        done = wiretale_run(*arguments)
        assert done.returncode == 3
        assert "\x1b" not in done.stdout + done.stderr and "\x07" not in done.stdout + done.stderr
        assert "[red]" in done.stdout


@FEW_SAMPLES
@pytest.mark.parametrize("width", ["40", "80", "200"])
def test_the_summary_fits_the_terminal(wiretale_run: Any, sample: Path, width: str) -> None:
    done = wiretale_run("analyze", sample, "--all", env={"COLUMNS": width})
    assert done.stdout and all(len(line) <= int(width) for line in done.stdout.splitlines())


def test_a_terminal_gets_color_and_no_color_takes_it(samples: Path) -> None:
    def on_terminal(**env: str) -> str:
        main, terminal = os.openpty()
        environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        command = [*WIRETALE, "analyze", str(samples / "damaged.pcap")]
        subprocess.run(command, stdout=terminal, check=False, env={**environment, "TERM": "xterm-256color", **env})
        os.close(terminal)
        with open(main, "rb", buffering=0) as screen:
            return screen.read(4096).decode()

    assert "\x1b[1;31m" in on_terminal()
    assert "\x1b[1;31m" not in on_terminal(NO_COLOR="1")


def test_info_shows_the_file_s_own_metadata(wiretale_run: Any, samples: Path) -> None:
    done = wiretale_run("info", samples / "two_interfaces.pcapng")
    assert done.returncode == 0
    for text in ("tun0", "dropped by the kernel", "dumpcap 4.4", "Two interfaces of one host"):
        assert text in done.stdout
    assert wiretale_run("info", samples / "damaged.pcap").returncode == 3


def test_doctor_names_each_check(wiretale_run: Any) -> None:
    done = wiretale_run("doctor", "--json")
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert {"Python", "duckdb", "libpcap", "capturing", "disk"} <= set(checks)
    assert done.returncode == (5 if any(c["state"] == "missing" for c in checks.values()) else 0)
    assert "duckdb" in wiretale_run("doctor").stdout


def test_explain_is_another_name_of_analyze(wiretale_run: Any, samples: Path) -> None:
    for words in (
        (samples / "tcp_losses.pcap",),
        (samples / "tcp_losses.pcap", "--all"),
        ("--cause", "copies"),
        ("--help",),
    ):
        assert wiretale_run("explain", *words).stdout == wiretale_run("analyze", *words).stdout != ""
