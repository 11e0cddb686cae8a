# SPDX-License-Identifier: Apache-2.0
"""No output destroys anything: devices, FIFOs, symbolic links, inputs and captures are there afterwards, for each option."""

from __future__ import annotations

import fcntl
import os
import select
import shutil
import signal
import socket
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import needs
import wiretale
from forked_commands import run_command as run
from processes import refusal, small_disk, wait_until
from wiretale.reports.export import destination
from wiretale.traffic.program import program_path

Files = dict[str, Path]
Words = list[str | Path]

WIRETALE = program_path("wiretale") or "wiretale"
PAGES = ("analyze", "compare", "diff", "experiment report")
FOLDERS = ("analyze", "compare", "experiment run")
REFUSED, UNWRITABLE = 2, 4


def refused(done: subprocess.CompletedProcess[str], code: int, *texts: str) -> None:
    message = refusal(done, code)
    assert all(text in message for text in texts), message


@cache
def short_plan() -> list[str]:
    """A plan without captures, on a port of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return ["quick", "--trials", "1", "--scale", "0.01", "--no-capture", "--port", str(port)]


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ran") / "experiment"
    done = run("experiment", "run", *short_plan(), "-o", folder)
    if done.returncode:
        pytest.skip(f"no experiment can be run here: {done.stderr.strip()}")
    return folder


@pytest.fixture
def files(samples: Path, tmp_path: Path) -> Files:
    paths = {"folder": tmp_path}
    for name, sample in (
        ("a.pcap", "tcp_losses.pcap"),
        ("b.pcap", "tcp_losses.pcap"),
        ("other.pcap", "vlan_ipv6.pcap"),
    ):
        paths[name] = tmp_path / name
        shutil.copy(samples / sample, paths[name])
    return paths


@pytest.fixture
def page_to(request: pytest.FixtureRequest, files: Files) -> Callable[..., Words]:
    """The command that writes a page to a path, and one of its inputs as `input`."""
    kind: str = request.param
    if kind == "experiment report":
        copy = files["folder"] / "ran"
        shutil.copytree(request.getfixturevalue("experiment"), copy)
        files["input"] = copy / "experiment.json"
        return lambda path, *more: ["experiment", "report", copy, "-o", path, *more]
    files["input"] = files["a.pcap"]
    inputs = [files["a.pcap"], files["b.pcap"]] if kind in ("compare", "diff") else [files["a.pcap"]]
    fast = ["--no-frames"] if kind == "analyze" else []
    return lambda path, *more: [kind, *inputs, "-q", *fast, "--report", path, *more]


def is_page(content: bytes) -> bool:
    text = content.lower()
    return text.startswith(b"<!doctype html>") and text.rstrip().endswith(b"</html>")


def reading(fifo: Path) -> tuple[threading.Thread, list[bytes]]:
    got: list[bytes] = []
    thread = threading.Thread(target=lambda: got.append(fifo.read_bytes()), daemon=True)
    thread.start()
    return thread, got


each_page = pytest.mark.parametrize("page_to", PAGES, indirect=True)


@each_page
def test_a_page_goes_where_its_name_leads(files: Files, page_to: Callable[..., Words]) -> None:
    folder = files["folder"]
    (folder / "target.html").write_text("old")
    (folder / "target.html").chmod(0o640)
    (folder / "link.html").symlink_to("target.html")
    (folder / "far.html").symlink_to("link.html")
    assert run(*page_to(folder / "far.html")).returncode == 0
    assert (folder / "far.html").is_symlink() and (folder / "link.html").is_symlink()
    assert is_page((folder / "target.html").read_bytes())
    assert stat.S_IMODE((folder / "target.html").stat().st_mode) == 0o640

    (folder / "dangling.html").symlink_to(folder / "new.html")
    assert run(*page_to(folder / "dangling.html"), umask=0o027).returncode == 0
    assert (folder / "dangling.html").is_symlink() and is_page((folder / "new.html").read_bytes())
    assert stat.S_IMODE((folder / "new.html").stat().st_mode) == 0o640

    os.mkfifo(folder / "pipe.svg")
    thread, got = reading(folder / "pipe.svg")
    assert run(*page_to(folder / "pipe.svg")).returncode == 0
    thread.join(60)
    assert is_page(got[0]) and stat.S_ISFIFO((folder / "pipe.svg").stat().st_mode)
    assert not list(folder.glob(".*"))


@needs.marked(needs.plain_processes())
@each_page
def test_a_page_goes_to_a_process_substitution(files: Files, page_to: Callable[..., Words]) -> None:
    needs.skip_without(needs.programs("bash"))
    words = " ".join(map(str, page_to("OUT"))).replace("OUT", f">(cat >{files['folder']}/copy; echo done)")
    done = subprocess.run(["bash", "-c", f"{WIRETALE} {words} | cat"], capture_output=True, text=True, timeout=120)
    assert "done" in done.stdout and is_page((files["folder"] / "copy").read_bytes()), done.stderr


@needs.marked(needs.root())
@each_page
def test_a_page_leaves_a_device_node_as_it_is(files: Files, page_to: Callable[..., Words]) -> None:
    for name, minor, code in (("null", 3, 0), ("full", 7, UNWRITABLE)):
        node = files["folder"] / name
        try:
            os.mknod(node, 0o666 | stat.S_IFCHR, os.makedev(1, minor))
            node.open("wb").close()
        except OSError as error:
            pytest.skip(f"no device nodes here: {error.strerror}")
        done = run(*page_to(node))
        assert done.returncode == code, done.stderr
        assert stat.S_ISCHR(node.stat().st_mode) and node.stat().st_rdev == os.makedev(1, minor)
    refused(done, UNWRITABLE, "No space left on device")


@each_page
def test_a_page_replaces_no_input(files: Files, page_to: Callable[..., Words]) -> None:
    folder, capture = files["folder"], files["input"]
    before = capture.read_bytes()
    os.link(capture, folder / "hard.html")
    (folder / "soft.html").symlink_to(capture)
    for name in (capture, folder / "hard.html", folder / "soft.html"):
        for more in ([], ["--overwrite"]):
            refused(run(*page_to(name, *more)), REFUSED, str(name), "is an input too")
    assert capture.read_bytes() == before and (folder / "soft.html").is_symlink()


@each_page
def test_a_page_replaces_a_capture_only_with_overwrite(files: Files, page_to: Callable[..., Words]) -> None:
    capture = files["folder"] / "capture.html"
    shutil.copy(files["other.pcap"], capture)
    before = capture.read_bytes()
    refused(run(*page_to(capture)), REFUSED, "capture.html: is a capture file", "--overwrite")
    assert capture.read_bytes() == before
    assert run(*page_to(capture, "--overwrite")).returncode == 0
    assert is_page(capture.read_bytes())


@each_page
def test_a_page_is_no_other_format_and_fails_in_one_line(
    files: Files, page_to: Callable[..., Words], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = files["folder"]
    before = sorted(folder.iterdir())
    for name in ("x.svg", "x.pdf", "x.html.gz"):
        refused(run(*page_to(folder / name)), REFUSED, name, ".html", ".htm", "standard output")
    refused(run(*page_to(folder)), UNWRITABLE, "it is a directory")
    refused(run(*page_to(folder / "nowhere" / "x.html")), UNWRITABLE, "No such file or directory")
    refused(run(*page_to(files["input"] / "x.html")), UNWRITABLE, "Not a directory")
    assert sorted(folder.iterdir()) == before
    monkeypatch.chdir(folder)  # a socket's path is short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("x.sock")
        refused(run(*page_to("x.sock"), cwd=folder), UNWRITABLE, "x.sock", "Connection refused")
        listener.listen()
        listener.settimeout(60)

        def received() -> bytes:
            with listener.accept()[0] as connection, connection.makefile("rb") as page:
                return page.read()

        with ThreadPoolExecutor() as pool:
            page = pool.submit(received)
            assert run(*page_to("x.sock"), cwd=folder).returncode == 0
            assert is_page(page.result())
        assert stat.S_ISSOCK(os.stat("x.sock").st_mode)
    for name in ("x.HTM", "plain"):
        assert run(*page_to(folder / name)).returncode == 0 and is_page((folder / name).read_bytes())


def test_captures_are_recognized_by_their_first_bytes(files: Files, samples: Path) -> None:
    target = files["folder"] / "out.html"
    classic, next_generation = files["other.pcap"].read_bytes(), (samples / "two_interfaces.pcapng").read_bytes()
    kinds = {"pcap": classic, "swapped": classic[3::-1] + classic[4:], "pcapng": next_generation}
    kinds["nanoseconds"] = b"\x4d\x3c\xb2\xa1" + classic[4:]
    kinds["modified"] = b"\x34\xcd\xb2\xa1" + classic[4:]
    for program in ("gzip", "zstd", "lz4"):
        if shutil.which(program):
            for name, content in (("pcap", classic), ("pcapng", next_generation), ("text", b"no capture\n")):
                packed = subprocess.run([program, "-q", "-c"], input=content, capture_output=True, check=True).stdout
                kinds[f"{program} {name}"] = packed
    for kind, content in kinds.items():
        target.write_bytes(content)
        done = run("analyze", files["a.pcap"], "-q", "--no-frames", "--report", target)
        if kind.endswith("text"):
            assert done.returncode == 0, kind
        else:
            refused(done, REFUSED, "is a capture file")
            assert target.read_bytes() == content, kind


def test_inputs_are_every_file_that_is_read(files: Files) -> None:
    folder = files["folder"] / "captures"
    folder.mkdir()
    shutil.copy(files["a.pcap"], folder / "deep.pcap")
    before = (folder / "deep.pcap").read_bytes()
    os.link(folder / "deep.pcap", files["folder"] / "page.html")
    page = files["folder"] / "page.html"
    refused(run("analyze", folder, "-q", "--report", page), REFUSED, "deep.pcap")
    refused(run("compare", files["a.pcap"], folder, "-q", "--report", page), REFUSED, "deep.pcap")
    with (folder / "deep.pcap").open("rb") as capture:
        refused(run("analyze", "-", "-q", "--report", page, stdin=capture), REFUSED, "standard input")
    for option in ("--sender-log", "--receiver-log"):
        log = files["folder"] / "log.html"
        log.write_text("{}\n")
        refused(run("compare", files["a.pcap"], option, log, "--report", log), REFUSED, "is an input too")
        assert log.read_text() == "{}\n"
    assert page.read_bytes() == before


@pytest.mark.parametrize("option", ["--report", "-o"])
def test_refusals_come_before_the_reading(files: Files, option: str) -> None:
    os.mkfifo(files["folder"] / "live.pcap")  # nothing writes to it: reading would wait for ever
    shutil.copy(files["other.pcap"], files["folder"] / "report.html")
    output = files["folder"] if option == "-o" else files["folder"] / "report.html"
    done = run("analyze", files["folder"] / "live.pcap", option, output, timeout=30)
    refused(done, REFUSED, "report.html: is a capture file")


def folder_words(kind: str, files: Files, out: Path) -> Words:
    if kind == "experiment run":
        return ["experiment", "run", *short_plan(), "-o", out]
    inputs = [files["a.pcap"]] if kind == "analyze" else [files["a.pcap"], files["b.pcap"]]
    return [kind, *inputs, "-q", "-o", out, *(["--csv"] if kind == "analyze" else [])]


TABLES = {"analyze": ["flows.parquet", "flows.csv", "report.html"], "compare": ["packets.parquet", "report.html"]}
WRITTEN = {**TABLES, "experiment run": ["results.csv"]}


@pytest.mark.parametrize("kind", FOLDERS)
def test_files_of_a_folder_go_where_their_names_lead(files: Files, kind: str) -> None:
    out = files["folder"] / "out"
    out.mkdir()
    linked, piped = WRITTEN[kind][-1], WRITTEN[kind][0]
    (files["folder"] / "elsewhere").write_text("old")
    (out / linked).symlink_to("../elsewhere")
    if kind != "experiment run":  # which reads its files again
        os.mkfifo(out / piped)
        thread, got = reading(out / piped)
    done = run(*folder_words(kind, files, out))
    assert done.returncode == 0, done.stderr
    assert (out / linked).is_symlink() and len((files["folder"] / "elsewhere").read_bytes()) > 100
    if kind != "experiment run":
        thread.join(60)
        assert got[0].startswith(b"PAR1") and got[0].endswith(b"PAR1") and stat.S_ISFIFO((out / piped).stat().st_mode)
    assert not list(out.glob(".partial*"))


@pytest.mark.parametrize("kind, name", [(kind, name) for kind, names in WRITTEN.items() for name in names])
def test_files_of_a_folder_replace_no_capture_and_no_input(files: Files, kind: str, name: str) -> None:
    out = files["folder"] / "out"
    out.mkdir()
    shutil.copy(files["other.pcap"], out / name)
    before = (out / name).read_bytes()
    refused(run(*folder_words(kind, files, out)), REFUSED, f"{name}: is a capture file")
    assert (out / name).read_bytes() == before and [path.name for path in out.iterdir()] == [name]
    if kind in TABLES:
        (out / name).unlink()
        os.link(files["a.pcap"], out / name)
        refused(run(*folder_words(kind, files, out), "--overwrite"), REFUSED, "is an input too")
        assert files["a.pcap"].read_bytes() == files["b.pcap"].read_bytes()
        (out / name).unlink()
        shutil.copy(files["other.pcap"], out / name)
        assert run(*folder_words(kind, files, out), "--overwrite").returncode == 0
        assert (out / name).read_bytes() != before


@pytest.mark.parametrize("kind", FOLDERS)
def test_a_file_is_no_folder(files: Files, kind: str) -> None:
    before = files["a.pcap"].read_bytes()
    for place in (files["a.pcap"], files["a.pcap"] / "below"):
        refused(run(*folder_words(kind, files, place)), UNWRITABLE, "Not a directory")
    assert files["a.pcap"].read_bytes() == before


def test_captures_that_are_not_of_the_experiment_stay(files: Files) -> None:
    out = files["folder"] / "out"
    (out / "captures").mkdir(parents=True)
    shutil.copy(files["other.pcap"], out / "captures" / "mine.pcap")
    refused(run(*folder_words("experiment run", files, out)), REFUSED, "mine.pcap: is a capture file", "--overwrite")
    assert not (out / "experiment.json").exists()
    assert run(*folder_words("experiment run", files, out), "--overwrite").returncode == 0
    assert run(*folder_words("experiment run", files, out)).returncode == 0  # goes on with its own


@needs.marked(needs.root())
@pytest.mark.parametrize("words, name", [(["up", "wan"], "link.log"), (["run", "s6-base"], "before/x.pcap")])
def test_a_lab_replaces_no_capture(files: Files, words: list[str], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIRETALE_STATE", str(files["folder"] / "labs"))
    capture = files["folder"] / "out" / name
    capture.parent.mkdir(parents=True)
    shutil.copy(files["other.pcap"], capture)
    before = capture.read_bytes()
    named = ["--name", f"o{os.getpid()}"] if words[0] == "up" else []
    done = run("lab", *words, *named, "-o", files["folder"] / "out")
    if done.returncode == 5:
        pytest.skip(done.stderr.strip())
    refused(done, REFUSED, f"{name}: is a capture file", "--overwrite")
    assert capture.read_bytes() == before


def test_python_refuses_the_same(files: Files) -> None:
    trace = wiretale.analyze(files["a.pcap"])
    page = files["folder"] / "page.html"
    os.link(files["a.pcap"], page)
    with pytest.raises(wiretale.UsageError, match="is an input too"):
        trace.report(page, overwrite=True)
    page.unlink()
    shutil.copy(files["other.pcap"], page)
    with pytest.raises(wiretale.UsageError, match="is a capture file"):
        trace.report(page)
    assert trace.report(page, overwrite=True) == page and is_page(page.read_bytes())
    with pytest.raises(wiretale.UsageError, match=r"\.htm"):
        trace.report(files["folder"] / "x.svg")
    out = files["folder"] / "out"
    out.mkdir()
    shutil.copy(files["other.pcap"], out / "flows.parquet")
    with pytest.raises(wiretale.UsageError, match="is a capture file"):
        trace.write(out)
    assert trace.write(out, overwrite=True) == out and (out / "flows.parquet").read_bytes().startswith(b"PAR1")
    with pytest.raises(wiretale.OutputError, match="cannot write"):
        trace.report(files["folder"])


def test_a_link_of_another_user_in_a_shared_folder_is_not_followed(files: Files) -> None:
    needs.skip_without(needs.root())
    shared, secret = files["folder"] / "shared", files["folder"] / "secret.html"
    shared.mkdir()
    shared.chmod(0o1777)
    secret.write_text("good")
    (shared / "page.html").symlink_to(secret)
    os.lchown(shared / "page.html", 65534, 65534)
    refused(run("analyze", files["a.pcap"], "-q", "--report", shared / "page.html"), UNWRITABLE, "shared directory")
    assert secret.read_text() == "good"


def wait_blocked(process: subprocess.Popen[str], fifo: int) -> None:
    """Until it sleeps with a full pipe before it."""

    def is_blocked() -> bool:
        state = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]
        return process.poll() is not None or (state == "S" and bool(select.select([fifo], [], [], 0)[0]))

    wait_until(is_blocked)


def test_an_interruption_leaves_nothing_partial(files: Files) -> None:
    fifo = files["folder"] / "pipe"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        command = [WIRETALE, "analyze", str(files["a.pcap"]), "-q", "--report", str(fifo)]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        wait_blocked(process, reader)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        os.close(reader)
    assert process.returncode == 130, errors
    assert sorted(path.name for path in files["folder"].iterdir()) == ["a.pcap", "b.pcap", "other.pcap", "pipe"]


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for no page."""
    needs.skip_without(needs.mounts())
    with small_disk(tmp_path / "small", "size=64k") as folder:
        yield folder


@each_page
def test_a_full_disk_leaves_the_older_file(files: Files, page_to: Callable[..., Words], full_disk: Path) -> None:
    (full_disk / "page.html").write_text("good")
    refused(run(*page_to(full_disk / "page.html")), UNWRITABLE, "No space left on device")
    assert [path.name for path in full_disk.iterdir()] == ["page.html"]
    assert (full_disk / "page.html").read_text() == "good"


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "words", ["--help", "--version", "analyze --help", "experiment run --help", "lab up --help", "doctor --help"]
)
def test_help_on_a_full_device_ends_with_4(words: str, unbuffered: str) -> None:
    with open("/dev/full", "w") as full:
        environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
        done = run(*words.split(), capture_output=False, stdout=full, stderr=subprocess.PIPE, env=environment)
    refused(done, UNWRITABLE, "No space left on device")


@pytest.mark.parametrize("command", ["analyze", "view"])
def test_a_full_disk_leaves_no_folder(files: Files, full_disk: Path, command: str) -> None:
    done = run(command, files["a.pcap"], "-q", "-o", full_disk / "new" / "out")
    refused(done, UNWRITABLE, "out: cannot write: No space left on device")
    assert not list(full_disk.iterdir())


@pytest.mark.parametrize("words", [("--report", "page.html"), ("-o", "tables")])
def test_a_read_only_file_system_is_named(files: Files, full_disk: Path, words: tuple[str, str]) -> None:
    subprocess.run(["mount", "-o", "remount,ro", full_disk], check=True)
    refused(run("analyze", files["a.pcap"], words[0], full_disk / words[1]), UNWRITABLE, "Read-only file system")


@needs.marked(needs.plain_processes())
@pytest.mark.parametrize("words", [["doctor"], ["analyze", "a.pcap", "-o", "tables"], ["view", "a.pcap", "-o", "new"]])
def test_a_current_directory_that_is_removed_is_named(files: Files, tmp_path: Path, words: Words) -> None:
    (tmp_path / "gone").mkdir()
    script = 'cd "$1"; rmdir "$1"; shift; exec "$@"'
    named = [files.get(str(word), word) for word in words]
    command = ["sh", "-c", script, "sh", tmp_path / "gone", WIRETALE, *named]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    refused(done, UNWRITABLE, "the current directory does not exist any more")


def test_view_refuses_an_output_that_is_no_folder_before_the_analysis(files: Files) -> None:
    done = run("view", files["a.pcap"], "-o", files["a.pcap"])
    refused(done, UNWRITABLE, "cannot write into it: Not a directory")


def test_every_output_option_has_the_option_to_overwrite() -> None:
    for words in ("analyze", "compare", "experiment run", "experiment report", "lab up", "lab run"):
        done = run(*words.split(), "--help")
        assert "--overwrite" in done.stdout and "replace an existing capture file" in done.stdout, words


def test_a_folder_that_another_run_is_about_to_remove_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, rivals = os.open, list[int]()

    def open_and_lose(path: Any, *flags: int, **place: Any) -> int:
        """Another run finds the first folder between its making and its lock."""
        if not rivals:
            rivals.append(opened(path, *flags, **place))
            fcntl.flock(rivals[0], fcntl.LOCK_EX)
        return opened(path, *flags, **place)

    monkeypatch.setattr(destination.os, "open", open_and_lose)
    with destination.partial_in(tmp_path, is_folder=True) as (path, _):
        removed = {each for each in tmp_path.iterdir() if each.samefile(f"/proc/self/fd/{rivals[0]}")}
        assert path.is_dir() and len(removed) == 1 and path not in removed
    os.close(rivals[0])


def test_what_killed_runs_left_is_removed(samples: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    words = ["analyze", samples / "vlan_ipv6.pcap", "-q", "-o", out]

    def left() -> int:
        return len(list(out.glob(".partial*")))

    os.mkfifo(out / "flows.parquet")  # runs wait for its reader
    waiting = [subprocess.Popen([WIRETALE, *map(str, words)]) for _ in range(2)]

    def is_waiting(process: subprocess.Popen[bytes]) -> bool:
        return Path(f"/proc/{process.pid}/wchan").read_text() == "wait_for_partner"

    wait_until(lambda: left() == 2 and all(map(is_waiting, waiting)))
    waiting[0].kill()
    waiting[0].wait()
    (out / "flows.parquet").unlink()
    assert run(*words).returncode == 0 and left() == 1  # that of the other run
    waiting[1].kill()
    waiting[1].wait()
    assert run(*words).returncode == 0 and left() == 0
