# SPDX-License-Identifier: Apache-2.0
"""Captures at URLs, from real servers: HTTP, moto's S3 and SSH. The rows are those of the local file, and nothing is stored."""

from __future__ import annotations

import functools
import http.server
import json
import os
import shlex
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
import pytest

import needs
import object_storage
from checkout import ROOT, SAMPLES
from document_blocks import command_lines
from processes import refusal
from ssh_server import serving, why_not

NAMES = ("tcp_losses.pcap", "tcp_blocks.pcapng")
PAGE = ROOT / "docs" / "remote.md"


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves files; `/cut/` breaks off in the middle of them, and `/closed/` is refused."""

    def log_message(self, *words: object) -> None:
        pass

    def refused(self) -> bool:
        """Answers `/status/403/…` by this status, and other folders in odd ways."""
        kind = self.path.split("/")[1]
        if kind == "status":
            self.send_error(int(self.path.split("/")[2]))
        elif kind == "closed":
            self.send_error(403)
        elif kind in ("loop", "file"):
            self.send_response(302)
            self.send_header("Location", self.path if kind == "loop" else "file:///etc/passwd")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif kind == "more":
            self.wfile.write(b"\xa1\xb2\xc3\xd4" * 500)
        elif kind == "page":
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<!DOCTYPE HTML>\n<html><body>files</body></html>" if self.command == "GET" else b"")
        return kind in ("status", "closed", "loop", "file", "more", "page")

    def do_GET(self) -> None:
        if self.refused():
            return None
        if not self.path.startswith("/cut/"):
            return super().do_GET()
        data = (SAMPLES / self.path.rpartition("/")[2]).read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2])
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)

    def do_HEAD(self) -> None:
        if self.refused():
            return None
        if not self.path.startswith("/cut/"):
            return super().do_HEAD()
        self.send_response(200)
        self.end_headers()


@contextmanager
def web_server(folder: Path) -> Iterator[str]:
    """The URL of a server with the files of a folder."""
    handler = functools.partial(Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    """The URL of a server with the samples."""
    with web_server(SAMPLES) as url:
        yield url


@pytest.fixture(scope="module")
def bucket() -> Iterator[dict[str, str]]:
    """The environment of clients of an S3 server that has the samples in s3://captures/day/."""
    with object_storage.s3() as environment:
        text = """
import pathlib
s3.create_bucket(Bucket="captures")
for name in sys.argv[1:]:
    s3.upload_file(name, "captures", "day/" + pathlib.Path(name).name)
    s3.upload_file(name, "captures", "2026-11-22/" + pathlib.Path(name).stem + ".pcapng")
s3.upload_file(sys.argv[1], "captures", "2026-11-22/core.pcapng.zst")  # recognized by its content
s3.put_object(Bucket="captures", Key="day/notes.txt", Body=b"no capture")
"""
        object_storage.script(environment, object_storage.S3, text, *(SAMPLES / name for name in NAMES))
        yield environment


def tables(run: Any, *words: str | Path, **options: Any) -> dict[str, Any]:
    """The output of analyze --json without the names of files."""
    done = run("analyze", "--json", *words, **options)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    for row in document["interfaces"]:
        row["file"] = Path(row["file"]).name
    return {**document, "inputs": [Path(name).name for name in document["inputs"]]}


@pytest.mark.parametrize("name", NAMES)
def test_a_capture_on_the_web_has_the_rows_of_the_file(wiretale_run: Any, web: str, name: str) -> None:
    assert tables(wiretale_run, f"{web}/{name}") == tables(wiretale_run, SAMPLES / name)


def test_rows_and_messages_have_the_url_without_secrets(wiretale_run: Any, web: str) -> None:
    secret = web.replace("://", "://me:word@") + "/tcp_losses.pcap?token=word"
    done = wiretale_run("analyze", "--json", secret)
    assert done.returncode == 0 and "word" not in done.stdout + done.stderr
    assert json.loads(done.stdout)["interfaces"][0]["file"] == web.replace("://", "://me@") + "/tcp_losses.pcap"
    missing = refusal(wiretale_run("analyze", secret.replace("tcp_losses", "none")), 4)
    assert missing == web.replace("://", "://me@") + "/none.pcap: not found"


def test_a_transfer_that_breaks_off_is_an_error_and_no_result(wiretale_run: Any, web: str) -> None:
    assert f"{web}/cut/tcp_losses.pcap: " in refusal(wiretale_run("analyze", f"{web}/cut/tcp_losses.pcap"), 4)


def test_a_page_that_is_no_capture_is_refused(wiretale_run: Any, web: str) -> None:
    assert f"{web}/README.md" in refusal(wiretale_run("analyze", f"{web}/README.md"), 4)


@pytest.mark.parametrize("status, reason", [(404, "not found"), (401, "401"), (403, "403"), (500, "500")])
def test_a_refusal_has_the_status_of_the_server(wiretale_run: Any, web: str, status: int, reason: str) -> None:
    url = f"{web}/status/{status}/x.pcap"
    text = refusal(wiretale_run("analyze", url), 4)
    assert text.startswith(f"{url}: ") and reason in text and ("not found" in text) == (status == 404)


@pytest.mark.parametrize(
    "place, reason",
    [
        ("status/404/", ": not found"),
        ("status/503/", ": the server answered 503 Service Unavailable"),
        ("loop/x.pcap", ": too many redirects"),
        ("file/x.pcap", ": the server redirects to a URL that is not of http or https"),
        ("more/x.pcap", ": the answer of the server is no HTTP"),
        ("page", ": is a web page: expected a capture, or for those in a folder a URL that ends with a slash"),
    ],
)
def test_each_answer_of_a_server_has_its_reason(wiretale_run: Any, web: str, place: str, reason: str) -> None:
    assert refusal(wiretale_run("info", f"{web}/{place}"), 4) == f"{web}/{place}{reason}"


def test_a_server_that_is_down_is_not_an_empty_folder(wiretale_run: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/day/"
    text = refusal(wiretale_run("analyze", url), 4)
    assert text.startswith(f"{url}: cannot connect: ") and "ssl" not in text and "no captures" not in text
    assert refusal(wiretale_run("analyze", "http://"), 4) == "http://: expected http://HOST/PATH"


def test_a_folder_on_the_web_skips_what_is_no_capture(wiretale_run: Any, tmp_path: Path) -> None:
    folder = tmp_path / "served"
    folder.mkdir()
    capture = (SAMPLES / NAMES[0]).read_bytes()
    for name, content in (
        ("a.pcap", bytes(4) + capture[4:]),
        ("b.pcap", capture[:20]),
        ("c.pcap", b""),
        ("d.pcap", capture),
    ):
        (folder / name).write_bytes(content)
    (folder / "d.pcap.sha256").write_text("0" * 64)
    with web_server(folder) as url:
        done = wiretale_run("info", f"{url}/", cwd=tmp_path)
        skipped = [line for line in done.stderr.splitlines() if "skipped" in line]
        assert done.returncode == 3 and skipped == [
            f"wiretale: skipped {url}/a.pcap: not a capture (expected pcap or pcapng)",
            f"wiretale: skipped {url}/b.pcap: truncated at byte 20, within its header",
            f"wiretale: skipped {url}/c.pcap: truncated at byte 0, within its header",
        ]
        (folder / "d.pcap").unlink()
        assert f"{url}/: no captures found; {url}/a.pcap: not a capture" in refusal(wiretale_run("info", f"{url}/"), 4)


def test_a_subfolder_that_the_web_server_refuses_is_named(wiretale_run: Any, tmp_path: Path) -> None:
    """Another one has a page with links to itself and, a second time, to a file below."""
    for name in ("closed", "day/one"):
        (tmp_path / name).mkdir(parents=True)
        shutil.copy(SAMPLES / NAMES[0], tmp_path / name / "a.pcap")
    links = "".join(f'<a href="{place}">x</a>' for place in ("./", "../day/", "one/", "one/a.pcap", "./one/a.pcap"))
    (tmp_path / "day" / "index.html").write_text(links)
    with web_server(tmp_path) as url:
        done = wiretale_run("info", f"{url}/", "--json", timeout=60)
    assert done.stderr == f"wiretale: skipped {url}/closed/: the server answered 403 Forbidden\n"
    assert done.returncode == 3 and json.loads(done.stdout)["inputs"] == [f"{url}/day/one/a.pcap"]


def test_a_scheme_may_have_capitals(wiretale_run: Any, web: str) -> None:
    url = f"{web}/tcp_losses.pcap"
    assert tables(wiretale_run, url.replace("http", "HTTP")) == tables(wiretale_run, url)


@pytest.mark.parametrize(
    "url", ["http://me:word@[::1/x.pcap", "ssh://me:word@host:99999/x.pcap", "ssh://host/", "http://h:word/x/"]
)
def test_what_is_no_url_is_one_line(wiretale_run: Any, url: str) -> None:
    assert url.partition("/")[0] in refusal(wiretale_run("analyze", url))


def test_commands_that_read_twice_need_a_file(wiretale_run: Any, web: str, tmp_path: Path) -> None:
    url, out = web.replace("://", "://me:word@") + "/tcp_losses.pcap", tmp_path / "out.pcapng"
    words = (
        ("cut", url, "-o", out),
        ("view", url),
        ("model", url, "-o", tmp_path / "plan.toml"),
        ("compare", url, SAMPLES / "tcp_losses.pcap"),
    )
    for command in (*words, ("store", "add", tmp_path / "s", f"{url}/")):
        text = refusal(wiretale_run(*command))
        assert "expected a local file" in text and "word" not in text
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["cut", "view", "compare", "verify", "store add"])
def test_the_help_of_commands_that_need_a_file_has_no_url(wiretale_run: Any, command: str) -> None:
    assert "URL" not in wiretale_run(*command.split(), "--help").stdout


def test_the_packets_of_a_capture_on_the_web_are_kept(wiretale_run: Any, web: str, tmp_path: Path) -> None:
    done = wiretale_run("analyze", f"{web}/tcp_losses.pcap", "-q", "-o", tmp_path / "out", "--tables", "packets")
    assert done.returncode == 0, done.stderr
    assert duckdb.sql(f"SELECT count(*) FROM '{tmp_path}/out/packets.parquet'").fetchall() == [(342,)]


def test_an_unreachable_server_is_one_line(wiretale_run: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for scheme in ("http", "ssh"):
        assert refusal(wiretale_run("analyze", f"{scheme}://127.0.0.1:{port}/x.pcap"), 4)


def test_a_bucket_a_pattern_and_a_folder(wiretale_run: Any, bucket: dict[str, str]) -> None:
    document = tables(wiretale_run, "s3://captures/day/tcp_losses.pcap", env=bucket)
    assert document == tables(wiretale_run, SAMPLES / "tcp_losses.pcap")
    both = tables(wiretale_run, *(SAMPLES / name for name in sorted(NAMES)))
    assert tables(wiretale_run, "s3://captures/day/", env=bucket) == both
    assert tables(wiretale_run, "s3://captures/day/tcp_*", env=bucket) == both
    assert refusal(wiretale_run("analyze", "s3://captures/night/", env=bucket), 4) == "s3://captures/night/: not found"
    assert refusal(wiretale_run("analyze", "s3://captures/day/none.pcap", env=bucket), 4).endswith("not found")
    for words in ((), ("--cluster", "local", "--workers", "1")):
        message = refusal(wiretale_run("analyze", "s3://captures/day", *words, env=bucket), 4)
        assert message.startswith("s3://captures/day: is a folder: end the URL with a slash")


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, str]]]:
    """The URL of a host that is reached by ssh, and the environment of a user who has its key."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("host")
    with serving(folder / "ssh", port, os.environ["PATH"]) as (_, _, *options):
        wrapper = folder / "bin" / "ssh"  # as the user's configuration would have key and host
        wrapper.parent.mkdir()
        wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} {shlex.join(options)} "$@"\n')
        wrapper.chmod(0o755)
        yield f"ssh://root@127.0.0.1:{port}", {"PATH": f"{wrapper.parent}:{os.environ['PATH']}"}


@needs.marked(why_not())
def test_a_capture_on_another_host_is_read_by_ssh(
    wiretale_run: Any, host: tuple[str, dict[str, str]], tmp_path: Path
) -> None:
    odd = tmp_path / "it's a capture; $HOME.pcap"
    shutil.copy(SAMPLES / "tcp_losses.pcap", odd)
    url, environment = host[0] + quote(str(odd)), host[1]
    document = tables(wiretale_run, url, env=environment)
    (row,), expected = document["interfaces"], tables(wiretale_run, odd)
    assert row["file"] == quote(odd.name)
    assert document["flows"] == expected["flows"] and document["directions"] == expected["directions"]
    missing = refusal(wiretale_run("analyze", url.replace("capture", "nothing"), env=environment), 4)
    assert missing.endswith("No such file or directory")


@pytest.mark.parametrize("line", command_lines(PAGE) if PAGE.is_file() else [])
def test_the_command_lines_of_the_page_run(
    wiretale_run: Any, web: str, bucket: dict[str, str], request: pytest.FixtureRequest, line: str
) -> None:
    words, environment = shlex.split(line.replace("https://example.org/slow", f"{web}/tcp_losses")), bucket
    if words[-1].startswith("ssh:"):
        needs.skip_without(why_not())
        url, environment = request.getfixturevalue("host")
        words[-1] = url + quote(str(SAMPLES / "tcp_losses.pcap"))
    done = wiretale_run(*words[1:], env=environment)
    assert words[0] == "wiretale" and done.returncode == 0, done.stderr


@needs.marked(why_not())
def test_the_rest_of_a_file_on_another_host_is_not_awaited(
    wiretale_run: Any, host: tuple[str, dict[str, str]], tmp_path: Path
) -> None:
    """More than a pipe holds is left if the file is no capture, or damaged: ssh would wait for its reader."""
    (noise, damaged), tail_bytes = (tmp_path / "noise.pcap", tmp_path / "damaged.pcap"), 1_000_000
    noise.write_bytes(b"n" * tail_bytes)
    damaged.write_bytes((SAMPLES / "tcp_losses.pcap").read_bytes() + b"\xff" * tail_bytes)
    text = refusal(wiretale_run("analyze", f"{host[0]}{noise}", env=host[1]), 4)
    assert text.startswith(f"{host[0]}{noise}: not a capture")
    remote = wiretale_run("analyze", "--json", f"{host[0]}{damaged}", env=host[1])
    local = wiretale_run("analyze", "--json", damaged)
    assert remote.returncode == local.returncode == 3
    assert json.loads(remote.stdout)["directions"] == json.loads(local.stdout)["directions"]


def test_without_the_libraries_one_line_names_them(wiretale_run: Any, web: str, tmp_path: Path) -> None:
    (tmp_path / "fsspec.py").write_text("raise ModuleNotFoundError('absent', name='fsspec')")
    text = refusal(wiretale_run("analyze", f"{web}/x.pcap", env={"PYTHONPATH": str(tmp_path)}), 5)
    assert "needs fsspec" in text and "pip install fsspec aiohttp`" in text
