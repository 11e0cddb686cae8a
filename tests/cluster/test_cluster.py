# SPDX-License-Identifier: Apache-2.0
"""`analyze --cluster`: real workers, of which some are killed, a real S3 server, damaged captures and lost files. The rows are
those of one run.

A capture on a web server that waits holds a run at a known step, so that no test depends on the speed of the machine.
"""

from __future__ import annotations

import functools
import http.server
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb
import pytest

import needs
import object_storage
from checkout import SAMPLES
from processes import SECONDS, refusal, wait_until
from wiretale.analyzer.errors import InputError, MissingToolError, UsageError
from wiretale.analyzer.options import NO_OPTIONS, AnalysisOptions
from wiretale.cluster.job import begin
from wiretale.cluster.place import Place

pytestmark = needs.marked(needs.package("distributed"))
NAMES = ("tcp_losses.pcap", "tcp_blocks.pcapng", "udp_fragments.pcap")
HELD = "fast_retransmissions.pcap"
LOOPBACK = "0100007F"  # as in /proc/net/tcp


class Gate:
    """Whether the web server gives HELD whole, or waits in the middle of it."""

    def __init__(self) -> None:
        self.is_open = threading.Event()
        self.was_asked = threading.Event()
        self.asker_port = 0


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the samples; HELD waits for the gate."""

    def __init__(self, *words: Any, gate: Gate, **options: Any) -> None:
        self.gate = gate
        super().__init__(*words, **options)

    def log_message(self, *words: object) -> None:
        pass

    def copyfile(self, source: Any, outputfile: Any) -> None:
        with suppress(OSError):  # its reader was killed
            if self.path.endswith(HELD) and not self.gate.is_open.is_set():
                outputfile.write(source.read(1000))
                outputfile.flush()
                self.gate.asker_port = self.client_address[1]
                self.gate.was_asked.set()
                self.gate.is_open.wait(SECONDS)
            shutil.copyfileobj(source, outputfile)


def answered(screen: str) -> str:
    """A screen without the next command, which names the inputs as they were given."""
    return screen.partition("\nNext ")[0]


@pytest.fixture
def gate() -> Iterator[tuple[Gate, str]]:
    """The gate of a web server, and the URL of HELD."""
    waiting = Gate()
    handler = functools.partial(Handler, directory=str(SAMPLES), gate=waiting)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield waiting, f"http://127.0.0.1:{server.server_port}/{HELD}"
        waiting.is_open.set()
        server.shutdown()


def members(session: int) -> dict[int, tuple[int, str]]:
    """Parent and words of each process of a session, but zombies."""
    processes = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, parent, _, its_session = (path / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(its_session) == session and state != "Z":
                processes[int(path.name)] = int(parent), (path / "cmdline").read_text().replace("\0", " ")
    return processes


@contextmanager
def started(folder: Path, *words: str | Path) -> Iterator[subprocess.Popen[str]]:
    """`wiretale analyze` in a session of its own."""
    command = [sys.executable, "-m", "wiretale", "analyze", *map(str, words)]
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "COLUMNS": "140"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        for member in members(process.pid):
            with suppress(ProcessLookupError):
                os.kill(member, signal.SIGKILL)
        process.kill()
        process.wait()


def same_tables(expected: Path, actual: Path) -> int:
    """Compares the rows of two outputs; returns the number of tables. A cluster sorts events and blocks by flow."""
    names = sorted(path.name for path in expected.iterdir() if path.suffix == ".parquet")
    assert names == sorted(path.name for path in actual.iterdir() if path.suffix == ".parquet")
    for name in names:
        rows, joined_rows = (duckdb.sql(f"FROM '{folder / name}'").fetchall() for folder in (expected, actual))
        if name in ("events.parquet", "blocks.parquet"):
            rows, joined_rows = sorted(map(repr, rows)), sorted(map(repr, joined_rows))
        assert rows == joined_rows, name
    return len(names)


def sockets(processes: set[int]) -> dict[tuple[str, int, str], int]:
    """Address, port and state of the sockets of processes, and the process of each."""
    owners: dict[str, int] = {}
    for process in processes:
        for link in Path(f"/proc/{process}/fd").glob("*"):
            with suppress(OSError):
                owners[os.readlink(link)] = process
    processes_of = {}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if owner := owners.get(f"socket:[{words[9]}]"):
                address, _, port = words[1].partition(":")
                processes_of[address, int(port, 16), words[3]] = owner
    return processes_of


def listening(processes: set[int]) -> set[tuple[str, int]]:
    """Addresses and ports that processes listen at."""
    return {(address, port) for address, port, state in sockets(processes) if state == "0A"}


def owner_of(processes: set[int], port: int) -> int:
    """The process that has a connection from a port."""
    return next(
        owner for (_, own_port, state), owner in sockets(processes).items() if own_port == port and state == "01"
    )


def first_answer(port: int) -> bytes:
    """What a port answers to a client without a certificate that asks for a page."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), SECONDS) as client:
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        client.shutdown(socket.SHUT_WR)
        return client.recv(4096)
    return b""


def test_a_killed_worker_costs_a_retry(wiretale_run: Any, gate: tuple[Gate, str], tmp_path: Path) -> None:
    """Meanwhile all ports are on the loopback interface, and none serves a page or a plain connection."""
    held_gate, url = gate
    for name in NAMES:
        shutil.copy(SAMPLES / name, tmp_path)
    words = (*NAMES, url, "-o")
    with started(tmp_path, *words, "out", "--cluster", "local", "--workers", "2", "--shards", "3") as run:
        wait_until(held_gate.was_asked.is_set, "a step reads the capture that waits")
        worker = owner_of(set(members(run.pid)), held_gate.asker_port)
        ports = listening(set(members(run.pid)))
        assert len(ports) >= 4 and {address for address, _ in ports} == {LOOPBACK}
        for _, port in ports:
            answer = first_answer(port)
            assert b" 200 " not in answer and b"compression" not in answer, answer
        os.kill(worker, signal.SIGKILL)
        held_gate.is_open.set()
        out, messages = run.communicate(timeout=SECONDS)
        assert run.returncode == 0, messages
        wait_until(lambda: not members(run.pid), "no process is left")
    assert messages.splitlines()[:3] and "cut 4 files" in messages and "analyzed 3 shards" in messages, messages
    single = wiretale_run("analyze", *words, "single", cwd=tmp_path)
    assert single.returncode == 0 and single.stdout == out
    assert same_tables(tmp_path / "single", tmp_path / "out") > 10
    assert not (tmp_path / "out.work").exists()


def test_workers_that_are_killed_while_they_start_are_one_line(tmp_path: Path) -> None:
    """As by a system that is short of memory."""
    with started(tmp_path, SAMPLES / NAMES[0], "--cluster", "local", "--workers", "1") as run:
        while run.poll() is None:
            for member, (_, words) in members(run.pid).items():
                if "spawn_main" in words:
                    with suppress(ProcessLookupError):
                        os.kill(member, signal.SIGKILL)
            time.sleep(0.02)
        out, messages = run.communicate(timeout=SECONDS)
        assert (
            run.returncode == 5
            and not out
            and messages.startswith("wiretale: --cluster local: the workers did not start (")
        ), messages
        assert messages.count("\n") == 1
        wait_until(lambda: not members(run.pid), "no process is left")


def test_selected_packets_give_the_files_of_one_run(wiretale_run: Any, tmp_path: Path) -> None:
    words = (*(SAMPLES / name for name in NAMES), "-f", "not port 5001", "--start", "2026-01-15T12:00:00.010Z", "-o")
    assert wiretale_run("analyze", *words, tmp_path / "one").returncode == 0
    with started(tmp_path, *words, "out", "--cluster", "local", "--workers", "2", "--shards", "2") as run:
        assert run.stdout
        run.stdout.close()  # as `| head` does: the files are written, and the working folder is removed
        run.stdout = None
        _, messages = run.communicate(timeout=SECONDS)
        assert run.returncode == 0 and "analyzed 2 shards" in messages, messages
    assert same_tables(tmp_path / "one", tmp_path / "out") > 10
    assert not (tmp_path / "out.work").exists()


def test_an_interrupted_run_leaves_no_process_and_continues(
    wiretale_run: Any, gate: tuple[Gate, str], tmp_path: Path
) -> None:
    """Files that were lost or damaged in between are made again, the others are not."""
    held_gate, url = gate
    bad, work = tmp_path / "bad.pcap", tmp_path / "out.work"
    bad.write_bytes(b"no capture")
    cut = tmp_path / "cut.pcap"
    cut.write_bytes((SAMPLES / "tcp_losses.pcap").read_bytes()[:20_000])
    files = (SAMPLES / NAMES[1], bad, cut)
    words = ("-o", tmp_path / "out", "--cluster", "local", "--workers", "2", "--shards", "2")
    with started(tmp_path, *files, url, *words) as run:
        wait_until(held_gate.was_asked.is_set, "a step reads the capture that waits")
        wait_until((work / "000001" / "facts.json").exists, "the other captures are split")
        os.killpg(run.pid, signal.SIGINT)
        _, messages = run.communicate(timeout=SECONDS)
        skipped, interrupted = messages.splitlines()
        assert run.returncode == 130 and interrupted == "wiretale: interrupted" and str(bad) in skipped, messages
        wait_until(lambda: not members(run.pid), "no process is left")
    held_gate.is_open.set()
    os.truncate(work / "000001" / "shard-01.pcapng.zst", 10)
    done = wiretale_run("analyze", *files, url, *words)
    assert done.returncode == 3, done
    assert f"continues the run in {work}" in done.stderr
    assert "cut 3 files" in done.stderr and "of them by an earlier run" in done.stderr
    assert f"again: 000001: packets of {cut} are damaged" in done.stderr
    assert done.stderr.count(f"skipped {bad}: not a capture") == 1 and f"{cut}: at byte " in done.stderr
    single = wiretale_run("analyze", files[0], cut, url, "-o", tmp_path / "single")
    assert single.returncode == 3 and answered(single.stdout) == answered(done.stdout)
    assert same_tables(tmp_path / "single", tmp_path / "out") > 10
    assert not work.exists()


@pytest.fixture(scope="module")
def bucket() -> Iterator[dict[str, str]]:
    """The environment of clients of an S3 server with the samples in s3://captures/day/."""
    with object_storage.s3() as environment:
        text = """
import pathlib
s3.create_bucket(Bucket="captures")
for name in sys.argv[1:]:
    s3.upload_file(name, "captures", "day/" + pathlib.Path(name).name)
"""
        object_storage.script(environment, object_storage.S3, text, *(SAMPLES / name for name in NAMES))
        yield environment


@contextmanager
def scheduler(environment: dict[str, str], folder: Path) -> Iterator[str]:
    """The address of a scheduler with a worker, as a user starts them, in a folder that has none of the captures."""
    port = object_storage.free_port()
    address = f"127.0.0.1:{port}"
    commands = (
        ("dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"),
        ("dask_worker", address, "--host", "127.0.0.1", "--nthreads", "2", "--no-dashboard"),
    )
    with (folder / "dask.log").open("w") as log:
        programs = [
            subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.{name}", *words],
                cwd=folder,
                env={**os.environ, **environment},
                stdout=log,
                stderr=log,
            )
            for name, *words in commands
        ]
        try:
            wait_until(lambda: object_storage.accepts(port), "the scheduler listens")
            yield address
        finally:
            for program in reversed(programs):
                program.terminate()
            for program in programs:
                program.wait(SECONDS)


def test_captures_shards_and_output_in_the_storage_of_google(wiretale_run: Any, tmp_path: Path) -> None:
    (here := tmp_path / "here").mkdir()
    with object_storage.google() as environment:
        text = (
            "gcs.mkdir('captures')\nfor name in sys.argv[1:]: gcs.put_file(name, 'captures/day/' + name.split('/')[-1])"
        )
        object_storage.script(environment, object_storage.GOOGLE, text, *(SAMPLES / name for name in NAMES))
        words = ("gs://captures/day/*", "--cluster", "local", "--shards", "2", "-o", "gs://captures/out")
        done = wiretale_run("analyze", *words, cwd=here, env=environment)
        assert done.returncode == 0 and "wrote gs://captures/out" in done.stderr, done.stderr
        text = "gcs.get('captures/out/', sys.argv[1] + '/', recursive=True)\nprint(*sorted(gcs.ls('captures')))"
        assert object_storage.script(environment, object_storage.GOOGLE, text, here).split() == [
            "captures/day",
            "captures/out",
        ]
        urls = [f"gs://captures/day/{name}" for name in sorted(NAMES)]
        single = wiretale_run("analyze", *urls, "-o", tmp_path / "single", cwd=here, env=environment)
    assert single.returncode == 0 and answered(single.stdout) == answered(done.stdout)
    assert same_tables(tmp_path / "single", here) > 10


def test_captures_shards_and_output_in_object_storage(
    wiretale_run: Any, bucket: dict[str, str], tmp_path: Path
) -> None:
    """A shard that is lost on the way is made again; the working folder is gone at the end."""
    for name in ("there", "here", "away"):
        (tmp_path / name).mkdir()
    there, here = tmp_path / "there", tmp_path / "here"
    urls = [f"s3://captures/day/{name}" for name in sorted(NAMES)]
    with scheduler(bucket, tmp_path / "away") as address:
        words = ("s3://captures/day/", "--cluster", address, "--shards", "2")
        done = wiretale_run("analyze", *words, "-o", "s3://captures/out", cwd=there, env=bucket)
        assert done.returncode == 0 and "wrote s3://captures/out" in done.stderr, done.stderr
        assert not list(there.iterdir())
    text = """
import pathlib
names = [one["Key"] for one in s3.list_objects_v2(Bucket="captures")["Contents"]]
for name in names:
    if name.startswith("out/"):
        s3.download_file("captures", name, sys.argv[1] + "/" + name[4:])
print(*sorted({name.split("/")[0] for name in names}))
"""
    assert object_storage.script(bucket, object_storage.S3, text, here).split() == ["day", "out"]
    single = wiretale_run("analyze", *urls, "-o", tmp_path / "single", cwd=there, env=bucket)
    assert single.returncode == 0 and answered(single.stdout) == answered(done.stdout)
    assert same_tables(tmp_path / "single", here) > 10
    assert (here / "report.html").stat().st_size > 100_000


def test_without_dask_one_line_names_its_packages(wiretale_run: Any, tmp_path: Path) -> None:
    (tmp_path / "distributed.py").write_text("raise ModuleNotFoundError('absent', name='distributed')")
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    words = ("analyze", SAMPLES / NAMES[0], "--cluster", "local", "-o", tmp_path / "out")
    text = refusal(wiretale_run(*words, env={"PYTHONPATH": path}), 5)
    assert "needs distributed" in text and "pip install distributed cryptography" in text
    assert not (tmp_path / "out.work").exists()


def test_dask_is_imported_only_for_a_cluster() -> None:
    script = "import sys; from wiretale.cli import main; main(sys.argv[1:]); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script, SAMPLES / NAMES[0], "-q"], capture_output=True, text=True)
    modules = done.stdout.split()
    assert "wiretale.cli.analyze" in modules
    assert not {"dask", "distributed", "wiretale.cluster", "wiretale.analyzer.files.remote"} & set(modules)


def test_an_address_without_a_scheduler_is_one_line(wiretale_run: Any, tmp_path: Path) -> None:
    words = ("analyze", SAMPLES / NAMES[0], "-o", tmp_path / "out", "--cluster")
    begin = time.monotonic()
    for address in (f"127.0.0.1:{object_storage.free_port()}", "tcp://no-such-host.invalid:8786", "127.0.0.1"):
        text = refusal(wiretale_run(*words, address), 5)
        assert text.startswith(f"--cluster {address}") and "no Dask scheduler" in text and "dask scheduler" in text
    with socket.create_server(("127.0.0.1", 0)) as silent:
        text = refusal(wiretale_run(*words, f"127.0.0.1:{silent.getsockname()[1]}"), 5)
    assert "no Dask scheduler answered within 10 s" in text
    assert time.monotonic() - begin < SECONDS
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "words, message",
    [
        (("--cluster", "somewhere:port"), "expected local, or HOST:PORT"),
        (("--cluster", "host:99999"), "expected local, or HOST:PORT"),
        (("--cluster", "10.0.0.1:8786"), "needs -o DIR or --work DIR"),
        (("--cluster", "10.0.0.1:8786", "--workers", "2", "-o", "out"), "--workers is for --cluster local"),
        (("--cluster", "local", "--filter", "tpc"), "filter 'tpc'"),
        (("--cluster", "local", "-o", "https://example.org/out"), "expected a directory, s3:// or gs://"),
        (("--work", "shards"), "--work needs --cluster"),
        (("-o", "s3://bucket/out"), "needs --cluster"),
        (("--cluster", "local", "-"), "expected a file or URL"),
    ],
)
def test_wrong_options_are_one_line(wiretale_run: Any, tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    text = refusal(wiretale_run("analyze", *words, *([] if "-" in words else [SAMPLES / NAMES[0]]), cwd=tmp_path))
    assert message in text and not list(tmp_path.iterdir())


def test_a_folder_of_others_is_refused_and_stays(wiretale_run: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    words = ("analyze", SAMPLES / NAMES[0], "--cluster", "local", "--work", tmp_path)
    assert "mine.txt" in refusal(wiretale_run(*words))
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_worker_must_have_the_same_version_folder_and_captures(tmp_path: Path) -> None:
    capture, work = tmp_path / "a.pcap", tmp_path / "work"
    shutil.copy(SAMPLES / NAMES[0], capture)
    job, _ = begin(Place(str(work)), [str(capture)], 2, NO_OPTIONS)
    job.check()
    job.check_visible(0)
    with pytest.raises(MissingToolError, match=r"has wiretale .*, but this is 0\.0: install the same"):
        job._replace(version="0.0").check()
    with pytest.raises(InputError, match="does not see this folder"):
        job._replace(work=str(tmp_path / "elsewhere")).check()
    os.utime(capture, ns=(0, 0))
    with pytest.raises(InputError, match=r"a.pcap: changed since the run began"):
        job.check_visible(0)
    capture.unlink()
    with pytest.raises(InputError, match=r"cannot read it .No such file"):
        job.check_visible(0)


def test_a_folder_of_another_run_is_refused(tmp_path: Path) -> None:
    place, captures = Place(str(tmp_path / "work")), [str(SAMPLES / NAMES[0])]
    assert not begin(place, captures, None, AnalysisOptions(max_flows=1))[1]
    assert begin(place, captures, None, AnalysisOptions(max_flows=1))[1]
    for options, shards, names, message in (
        (AnalysisOptions(max_flows=2), None, captures, "with other options"),
        (AnalysisOptions(max_flows=1), 3, captures, "with other options"),
        (AnalysisOptions(max_flows=1), None, [str(SAMPLES / NAMES[1])], "of other captures"),
    ):
        with pytest.raises(UsageError, match=message):
            begin(place, names, shards, options)
    content = json.loads((tmp_path / "work" / "cluster.json").read_text())
    for changed, error, message in (
        ({**content, "version": "0.0"}, UsageError, r"is of a run of wiretale 0\.0"),
        ({**content, "files": [[*content["files"][0][:2], "0"]]}, InputError, "changed since the run"),
        ({"schema": content["schema"]}, InputError, "damaged: remove the folder"),
    ):
        (tmp_path / "work" / "cluster.json").write_text(json.dumps(changed))
        with pytest.raises(error, match=message):
            begin(place, captures, None, AnalysisOptions(max_flows=1))


def test_nothing_is_imported_from_the_folder_of_the_captures(tmp_path: Path) -> None:
    for name in ("multiprocessing", "ctypes", "json", "distributed", "wiretale"):
        (tmp_path / f"{name}.py").write_text("open('imported', 'w')\nraise ImportError\n")
    shutil.copy(SAMPLES / NAMES[0], tmp_path)
    program = Path(sys.executable).with_name("wiretale")  # -m would import from the folder
    words = ("analyze", NAMES[0], "--cluster", "local", "--workers", "1", "--shards", "1", "--json")
    done = subprocess.run([program, *words], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, (tmp_path / "imported").exists()) == (0, False), done.stderr
