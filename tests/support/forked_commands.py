# SPDX-License-Identifier: Apache-2.0
"""Runs `wiretale` in processes of its own that are forked from one that has imported it: each has its streams, environment,
directory, signals and exit code, but not the time of a start.

What a start itself does is for a new interpreter: `Commands.run` starts one if the environment differs in what it reads.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
from functools import cache
from typing import Any, NoReturn

# What most commands import, and the parts of a report.
IMPORTED = (
    *("cli.analyze", "cli.compare", "cli.diff", "cli.outputs", "cli.store", "analyzer.query", "analyzer.trace"),
    *("analyzer.causes.registry", "analyzer.findings.explain", "reports.html.analyze", "reports.terminal.screen.page"),
)
PAGES = {"capture/capture.html": "capture/capture.js", "compare.html": "figures.js"}
READ_AT_START = ("PYTHON", "LC_", "LANG", "LD_", "TZ", "ASAN", "LLVM")
FORKED = {"capture_output", "cwd", "stdin", "text", "timeout", "umask"}
MESSAGE = 1 << 20


def at_start(environment: dict[str, str]) -> dict[str, str]:
    """The variables that an interpreter and the libraries that it loads read at their start."""
    return {name: value for name, value in environment.items() if name.startswith(READ_AT_START)}


# --- the process that is forked


def become(words: list[str], environment: dict[str, str], folder: str, mask: int, streams: list[int]) -> NoReturn:
    """The command, in the process that was forked for it."""
    from wiretale.cli import command

    code = 1
    try:
        for place, stream in enumerate(streams):
            os.dup2(stream, place)
        os.closerange(3, 256)
        os.umask(mask)
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        sys.argv, sys.path[0] = words, folder
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        try:
            command()
        except SystemExit as ended:  # as an interpreter ends
            code = ended.code if isinstance(ended.code, int) else 1
            threading._shutdown()  # type: ignore[attr-defined]
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def serve(control: socket.socket) -> None:
    """Forks a process for each message, and answers on the socket that came with it by number and wait status."""
    import gc
    from importlib import import_module

    for name in IMPORTED:
        import_module(f"wiretale.{name}")
    from wiretale.reports.html import modules, offline_page

    offline_page.plotly()
    for template, entry in PAGES.items():
        offline_page.templates().get_template(template)
        modules.script(entry)
    gc.freeze()
    waiting: dict[int, socket.socket] = {}
    ends, woken = socket.socketpair()
    woken.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.signal(signal.SIGINT, lambda number, frame: None)
    signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
    with selectors.DefaultSelector() as selector:
        selector.register(control, selectors.EVENT_READ)
        selector.register(ends, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is ends:
                    ends.recv(4096)
                    continue
                text, handles, _, _ = socket.recv_fds(control, MESSAGE, 4)
                if not text:
                    return
                answers, *streams = handles
                if not (child := os.fork()):
                    become(*json.loads(text), streams)
                for stream in streams:
                    os.close(stream)
                waiting[child] = socket.socket(fileno=answers)
                waiting[child].send(b"%d" % child)
            with contextlib.suppress(ChildProcessError):
                while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                    with waiting.pop(ended[0]) as answer, contextlib.suppress(OSError):
                        answer.send(b"%d" % ended[1])


# --- the process that asks


class Reader(threading.Thread):
    """Reads a pipe to its end."""

    def __init__(self, text: bool) -> None:
        super().__init__(daemon=True)
        source, self.end = os.pipe()
        self.file: Any = open(source, "r" if text else "rb")  # noqa: SIM115 (run closes it)
        self.content: Any = None
        self.start()

    def run(self) -> None:
        with self.file:
            self.content = self.file.read()


class Commands:
    """The command line of wiretale for the tests of one worker."""

    def __init__(self) -> None:
        self.control, remote = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MESSAGE)
        command, null = [sys.executable, __file__, str(remote.fileno())], subprocess.DEVNULL
        with remote:
            self.process = subprocess.Popen(command, stdin=null, stdout=null, pass_fds=[remote.fileno()])
        self.environment = at_start(dict(os.environ))
        atexit.register(self.close)

    def close(self) -> None:
        self.control.close()
        self.process.wait()

    def run(self, *words: object, **options: Any) -> subprocess.CompletedProcess[Any]:
        """As subprocess.run does with `python -m wiretale` and the words, and without a terminal."""
        texts = [os.fsdecode(word) if isinstance(word, bytes) else str(word) for word in words]
        command = [sys.executable, "-m", "wiretale", *texts]
        env = {**os.environ, "COLUMNS": "140", **options.pop("env", {})}
        options = {"capture_output": True, "text": True, "timeout": 300, **options}
        if options.keys() - FORKED or not options["capture_output"] or at_start(env) != self.environment:
            return subprocess.run(command, env=env, **options)
        stdin = options.get("stdin", 0)
        stdin = stdin if isinstance(stdin, int) else stdin.fileno()
        os.umask(mask := os.umask(0))
        folder = os.fspath(options.get("cwd") or os.getcwd())
        message = json.dumps([command[2:], env, folder, options.get("umask", mask)]).encode()
        readers = [Reader(options["text"]) for _ in range(2)]
        answer, reply = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with answer:
            with reply:
                socket.send_fds(self.control, [message], [reply.fileno(), stdin, *(reader.end for reader in readers)])
            for reader in readers:
                os.close(reader.end)
            answer.settimeout(options["timeout"])
            number = int(answer.recv(20))
            try:
                status = int(answer.recv(20))
            except TimeoutError:
                os.kill(number, signal.SIGKILL)
                raise subprocess.TimeoutExpired(command, options["timeout"]) from None
        for reader in readers:
            reader.join(options["timeout"])
        code = os.waitstatus_to_exitcode(status)
        return subprocess.CompletedProcess(command, code, *(reader.content for reader in readers))


@cache
def commands() -> Commands:
    """Those of this worker."""
    return Commands()


def run_command(*words: object, **options: Any) -> subprocess.CompletedProcess[Any]:
    """Runs `wiretale` as a user would, in a process of its own."""
    return commands().run(*words, **options)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
