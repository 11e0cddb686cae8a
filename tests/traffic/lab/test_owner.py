# SPDX-License-Identifier: Apache-2.0
"""Labs and the processes that use them: a run keeps its lab until it ends, and no run leaves one behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab_bench import COMMAND, NEEDED, hosts_of, wiretale_lab
from processes import command_lines, wait_until
from wiretale.traffic.lab.state import HOSTS, Lab

pytestmark = [pytest.mark.xdist_group("lab-owner"), NEEDED]
SECONDS = 60


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Labs are written down where no other test looks."""
    folder = tmp_path / "state" / "labs"
    monkeypatch.setenv("WIRETALE_STATE", str(folder))
    return folder


def processes_with(text: str) -> list[str]:
    """Other processes that have the text in their command line."""
    lines = {pid: " ".join(words) for pid, words in command_lines()}
    return [f"{pid} {line}" for pid, line in lines.items() if text in line and pid != os.getpid()]


def is_sending(name: str) -> bool:
    """Whether a sender of wiretale-traffic runs in the lab."""
    command = ["ip", "netns", "pids", Lab(name, "").namespace("sender")]
    inside = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS).stdout.split()
    return any(str(pid) in inside and words[1:2] == ["send"] for pid, words in command_lines())


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A `lab run` that sends over its link, and the name of its lab; it does not lead a group of its own."""
    command = [*COMMAND, "run", *arguments, "-o", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    name = f"run-{process.pid}"
    try:
        wait_until(lambda: process.poll() is not None or is_sending(name), "a sender runs")
        wait_until(lambda: process.poll() is not None or (folder / "capture-after.log").exists(), "no capture")
        assert process.poll() is None and len(hosts_of(name)) == 3, process.stderr and process.stderr.read()
        yield process, name
    finally:
        process.kill()
        process.communicate()
        wait_until(lambda: not hosts_of(name), f"{name} is still there")


@pytest.mark.parametrize("arguments", [("s6-base",), ("s5-rate-sweep", "--profile", "same-switch")])
def test_a_killed_run_takes_all_that_it_made_with_it(tmp_path: Path, state: Path, arguments: tuple[str, ...]) -> None:
    """Only the process itself is killed, not its group: its link, captures, receiver and senders go all the same."""
    folder = tmp_path / "out"
    with running(folder, *arguments) as (process, name):
        assert processes_with(str(folder)) and list(state.glob(f"{name}.json"))
        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_until(lambda: not hosts_of(name), "the hosts are still there")
        wait_until(lambda: not processes_with(str(folder)), "programs still run")
        wait_until(lambda: not processes_with(name), "the watcher still runs")
    assert list(state.iterdir()) == []
    assert wiretale_lab("list", "--json").stdout.startswith('{"schema": "wiretale.labs/1", "labs": []')


def test_a_lab_in_use_is_left_alone(tmp_path: Path, state: Path) -> None:
    other = f"d{os.getpid()}"
    assert wiretale_lab("up", "same-host", "--name", other).returncode == 0
    try:
        with running(tmp_path / "out", "s6-base") as (process, name):
            left = f"wiretale: the lab {name} is kept: process {process.pid} uses it\n"
            single = wiretale_lab("down")  # there is only one other
            assert (single.returncode, single.stderr) == (0, f"{left}wiretale: the lab {other} is down\n")
            every = wiretale_lab("down", "--all")
            assert (every.returncode, every.stderr) == (0, left)
            named = wiretale_lab("down", "--name", name)
            assert named.returncode == 2 and f"is in use by process {process.pid}" in named.stderr
            none = wiretale_lab("down")
            assert none.returncode == 2 and none.stderr.startswith(left)
            assert len(hosts_of(name)) == 3 and process.poll() is None
    finally:
        wiretale_lab("down", other)
    assert hosts_of(other) == []


def test_a_lab_with_a_shell_is_left_alone(state: Path) -> None:
    """Its own link is no user of it; a person's shell on any of its hosts is."""
    name = f"u{os.getpid()}"
    assert wiretale_lab("up", "same-host", "--name", name).returncode == 0
    try:
        for host in HOSTS:
            command = [*COMMAND, "shell", name, host, "--", "sh", "-c", "echo in; read end"]
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as shell:
                assert shell.stdout and shell.stdout.readline() == "in\n"
                user = f"process {shell.pid} (sh)"
                every = wiretale_lab("down", "--all")
                left = f"wiretale: the lab {name} is kept: {user} uses it\n"
                assert (every.returncode, every.stderr) == (0, left)
                only = wiretale_lab("down")
                assert only.returncode == 2 and only.stderr.startswith(left)
                named = wiretale_lab("down", name)
                assert named.returncode == 2 and f"the lab {name} is in use by {user}: stop that" in named.stderr
                assert shell.poll() is None and len(hosts_of(name)) == 3
                shell.communicate("\n", timeout=SECONDS)
        script = "echo in; exec sleep 60"
        command = [*COMMAND, "shell", name, "sender", "--", "sh", "-c", script]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as sleeper:
            assert sleeper.stdout and sleeper.stdout.readline() == "in\n"
            assert f"process {sleeper.pid} (s" in wiretale_lab("down", name).stderr
            assert wiretale_lab("down", name, "--force").returncode == 0
            assert sleeper.wait(SECONDS) != 0
    finally:
        done = wiretale_lab("down", "--all", "--force")
    assert done.returncode == 0 and hosts_of(name) == [] and list(state.iterdir()) == []


def removed_by_force(name: str) -> None:
    assert wiretale_lab("down", name, "--force").returncode == 0


def removed_by_hand(name: str) -> None:
    for host in HOSTS:
        subprocess.run(["ip", "netns", "delete", Lab(name, "").namespace(host)], check=True)


@pytest.mark.parametrize(
    ("arguments", "remove"),
    [
        (("s6-base",), removed_by_force),
        (("s5-rate-sweep", "--profile", "same-switch"), removed_by_force),
        (("quick", "--profile", "wan"), removed_by_hand),
    ],
)
def test_a_run_whose_lab_is_removed_says_so_with_code_5(
    tmp_path: Path, arguments: tuple[str, ...], remove: Callable[[str], None]
) -> None:
    with running(tmp_path / "out", *arguments) as (process, name):
        remove(name)
        errors = process.communicate(timeout=SECONDS)[1]
        assert (process.returncode, errors.splitlines()[-1:]) == (
            5,
            [f"wiretale: the lab {name} was removed while it was in use (`lab down --force`, or `ip netns delete`)"],
        )
        assert "Traceback" not in errors and hosts_of(name) == []


def test_a_lab_whose_owner_is_dead_is_removed(tmp_path: Path, state: Path) -> None:
    """As when the machine's memory ran out, and the watcher was killed with the run."""
    name = f"z{os.getpid()}"
    assert wiretale_lab("up", "same-host", "--name", name).returncode == 0
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    file = state / f"{name}.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "owner": gone.pid, "owner_start": "1"}))
    done = wiretale_lab("down", "--all")
    assert (done.returncode, done.stderr, hosts_of(name)) == (0, f"wiretale: the lab {name} is down\n", [])


def test_a_name_is_taken_in_either_form() -> None:
    name = f"f{os.getpid()}"
    assert wiretale_lab("up", "same-host", "--name", name).returncode == 0
    try:
        for words in ([name, "receiver"], ["--name", name, "receiver"], ["receiver", "--name", name]):
            shell = wiretale_lab("shell", *words, "--", "ip", "-4", "address")
            assert "10.99.0.2/24" in shell.stdout, shell.stderr
        wrong = wiretale_lab("shell", name, "router")
        assert wrong.returncode == 2 and "expected sender, tracer or receiver" in wrong.stderr
        assert wiretale_lab("down", name, "--name", "another").returncode == 2
        assert len(hosts_of(name)) == 3
    finally:
        done = wiretale_lab("down", "--name", name)
    assert (done.returncode, hosts_of(name)) == (0, [])
