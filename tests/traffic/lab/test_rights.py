# SPDX-License-Identifier: Apache-2.0
"""Who may make a lab, and where labs are written down."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import needs
from wiretale.analyzer.errors import MissingToolError, OutputError, UsageError
from wiretale.traffic.lab import rights, state
from wiretale.traffic.lab.lifecycle import lab_down, lab_status
from wiretale.traffic.lab.state import Lab, find_lab, forget_lab, known_labs, save_lab, state_folder

pytestmark = pytest.mark.xdist_group("counted")


@pytest.fixture
def ordinary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An ordinary user, outside any namespace of their own."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    for name in ("WIRETALE_STATE", "XDG_RUNTIME_DIR", state.USER):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("ordinary")
def test_a_kernel_without_user_namespaces_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "unshare"
    program.write_text("#!/bin/sh\necho 'unshare: unshare failed: Operation not permitted' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(rights, "find_program", lambda name: str(program))
    with pytest.raises(MissingToolError, match=r"Operation not permitted.*run as root") as caught:
        rights.with_rights(keeping=False)
    assert caught.value.exit_code == 5
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("ordinary")
def test_a_user_is_taken_into_a_namespace_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    became: list[list[str]] = []
    monkeypatch.setattr(rights, "check_allowed", lambda: None)
    monkeypatch.setattr(rights, "find_program", lambda name: f"/bin/{name}")
    monkeypatch.setattr(os, "execve", lambda path, words, environment: became.append([*words, environment[state.USER]]))
    monkeypatch.setattr(rights, "holder", lambda: 77)
    monkeypatch.setattr(rights.sys, "argv", ["wiretale", "lab", "run", "s6"])
    rights.with_rights(keeping=False)
    assert became and became[0][:5] == ["/bin/unshare", "--user", "--map-root-user", "--mount", "--net"]
    assert became[0][-4:] == ["lab", "run", "s6", "1000"]


@pytest.mark.usefixtures("ordinary")
def test_labs_of_a_user_are_written_down_among_the_users_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert state_folder() == tmp_path / "wiretale" / "labs"
    save_lab(Lab("one", "wan"))
    save_lab(Lab("two", "lte"))
    assert [lab.name for lab in known_labs()] == ["one", "two"]
    with pytest.raises(UsageError, match=r"expected the name of a lab \(labs: one, two\)"):
        find_lab(None)
    forget_lab(find_lab("one"))
    assert find_lab(None).profile == "lte"


def test_a_state_file_that_is_damaged_is_still_a_lab_to_take_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WIRETALE_STATE", str(tmp_path))
    (tmp_path / "half.json").write_text('{"name": "ha')
    (tmp_path / "other.json").write_text('{"name": "../../x", "profile": "wan"}')
    (tmp_path / "-rf.json").write_text("{}")
    assert [(lab.name, lab.profile) for lab in known_labs()] == [("half", "unknown"), ("other", "wan")]


def test_a_process_number_given_to_another_is_no_holder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIRETALE_STATE", str(tmp_path / "labs"))
    file = rights.holder_file()
    file.write_text(f"{os.getpid()} {rights.start_time(os.getpid())}")
    assert rights.holder() == os.getpid()
    file.write_text(f"{os.getpid()} 12345")
    assert rights.holder() is None
    file.write_text("nonsense")
    assert rights.holder() is None


def test_a_holder_that_has_ended_does_not_count_before_it_is_reaped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WIRETALE_STATE", str(tmp_path / "labs"))
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        rights.holder_file().write_text(f"{process.pid} {rights.start_time(process.pid)}")
        assert rights.holder() == process.pid
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it stays a zombie
        assert rights.holder() is None


def test_a_folder_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "wiretale-4711").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    monkeypatch.setenv(state.USER, "4711")
    for name in ("WIRETALE_STATE", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(OutputError, match="expected a directory of this user"):
        known_labs()


def test_processes_in_an_unreachable_namespace_are_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIRETALE_STATE", str(tmp_path))
    needs.skip_without(needs.user_namespaces())
    monkeypatch.delenv(state.USER, raising=False)
    command = ["unshare", "--user", "--map-root-user", "sh", "-c", "echo inside; read -r line"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    strangers = subprocess.Popen(command, **pipes)
    lost = subprocess.Popen(command, **pipes, env={**os.environ, state.USER: "1000"})
    spaces = []
    for process in (strangers, lost):
        assert process.stdout and process.stdout.readline() == "inside\n"
        spaces.append(os.stat(f"/proc/{process.pid}/ns/user").st_ino)
    try:
        assert rights.processes_of(spaces[0]) == []  # not marked: no lab's
        lab = Lab("lost", "wan", folder=str(tmp_path), space=spaces[1])
        save_lab(lab)
        assert lab_status(lab) == "broken" and len(rights.processes_of(lab.space)) >= 1
        lab_down(lab)
        assert lab_status(lab) == "gone" and known_labs() == []
        assert lost.wait(10) and strangers.poll() is None
    finally:
        for process in (strangers, lost):
            process.kill()
            process.communicate()


def test_nothing_is_imported_from_the_folder_that_a_lab_is_run_in(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('json.py of this folder was run')")
    words = rights.again()
    command = [*words[: words.index("wiretale") + 1], "lab", "list", "--json"]
    environment = {**os.environ, "WIRETALE_STATE": str(tmp_path / "labs")}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=30)
    assert done.returncode == 0, done.stderr
    assert "same-switch" in done.stdout
