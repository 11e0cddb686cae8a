# SPDX-License-Identifier: Apache-2.0
"""wiretale-capture gives nothing away: to its commands, by its death, in folders of root's. (test_confine.c: from inside.)"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

import needs
from capture_link import ORDINARY, PROGRAM, CaptureLink, Daemon, finished, packets_in, refused
from processes import output, wait_until

pytestmark = pytest.mark.xdist_group("capture")

# A command that tries to send a frame on each of its descriptors, and lists them.
INTRUDER = """
import json, os, socket, sys
links, tried = {}, {}
for name in os.listdir("/proc/self/fd"):
    try:
        links[name] = os.readlink(f"/proc/self/fd/{name}")
    except OSError:
        pass  # the list itself
for name, leads_to in links.items():
    try:
        socket.socket(fileno=os.dup(int(name))).send(bytes.fromhex("020000000002 020000000001 88b5") + b"INJECTED")
        tried[name] = [leads_to, "sent"]
    except OSError as error:
        tried[name] = [leads_to, error.strerror]
with open(sys.argv[1], "w") as file:
    json.dump(tried, file)
"""
# An upload that takes long.
UPLOAD = """
import sys, time
open(sys.argv[1], "w").close()
time.sleep(120)
"""


def script(folder: Path, text: str) -> Path:
    path = folder / "script.py"
    path.write_text(text)
    return path


def users_of(daemon: Daemon) -> set[str]:
    """Real, effective, saved and file-system user, and the groups."""
    fields = daemon.fields()
    return {*fields["Uid"].split(), *fields["Gid"].split(), *fields["Groups"].split()}


def promiscuity(link: CaptureLink) -> int:
    (interface,) = json.loads(output("ip", "-n", link.tracer, "-d", "-j", "link", "show", "in0"))
    return int(interface["promiscuity"])


def packet_sockets(link: CaptureLink) -> int:
    return len(link.run(link.tracer, "cat", "/proc/net/packet").splitlines()) - 1


# --- commands


def test_a_command_has_no_descriptor_of_the_capture(link: CaptureLink, tmp_path: Path) -> None:
    tried = tmp_path / "tried"
    command = f"{sys.executable} -S {script(tmp_path, INTRUDER)} {tried}"
    read_end, write_end = os.pipe()  # nor one that the capture inherited
    options = ("--on-close", command, "-Z", "root")
    try:
        with link.daemon(*options, watched=True, pass_fds=(write_end,)) as daemon:
            assert promiscuity(link) == 1 and packet_sockets(link) == 1
            assert not daemon.stop()
    finally:
        os.close(read_end)
        os.close(write_end)
    descriptors = json.loads(tried.read_text())
    assert set(descriptors) == {"0", "1", "2"}, descriptors
    assert descriptors["0"][0] == "/dev/null"
    assert "sent" not in [how for _, how in descriptors.values()]


def test_a_capture_that_was_killed_during_a_command_can_start_again_at_once(link: CaptureLink, tmp_path: Path) -> None:
    started = tmp_path / "started"
    command = f"{sys.executable} -S {script(tmp_path, UPLOAD)} {started}"
    with link.daemon("--on-close", command, "-Z", "root", watched=True) as daemon:
        daemon.process.send_signal(signal.SIGUSR1)
        wait_until(started.exists, "the command runs")
        helpers = Path(f"/proc/{daemon.process.pid}/task/{daemon.process.pid}/children").read_text().split()
        assert "wiretale-close\n" in [Path(f"/proc/{pid}/comm").read_text() for pid in helpers]
        daemon.stop(signal.SIGKILL)
    wait_until(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in helpers), "the helpers end", 10)
    assert (promiscuity(link), packet_sockets(link)) == (0, 0)
    assert not link.status.exists()
    link.records(10, "-Z", "root", watched=True)
    assert packets_in(*link.files()) == 10


# --- who starts it


def test_the_capture_keeps_no_descriptor_of_who_starts_it(link: CaptureLink, tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    with (tmp_path / "stream.pcapng").open("wb") as stream:
        inherited = (write_end, stream.fileno())
        with link.daemon("-c", "10", into=f"/dev/fd/{stream.fileno()}", pass_fds=inherited) as daemon:
            os.close(write_end)
            assert select.select([read_end], [], [], 10)[0] and not os.read(read_end, 1)  # the other end is closed
            assert daemon.process.poll() is None
            link.send(10)
            assert not daemon.process.wait(timeout=60)
    os.close(read_end)
    assert packets_in(tmp_path / "stream.pcapng") == 10


def test_a_descriptor_that_is_not_open_is_refused() -> None:
    messages = refused(4, "-i", "lo", "-w", "/dev/fd/9", "-a", "duration:1s")
    assert "cannot write to /dev/fd/9: Bad file descriptor" in messages


@needs.marked(needs.plain_processes())
@pytest.mark.parametrize("bit", [stat.S_ISUID, stat.S_ISGID])
def test_a_set_user_id_bit_is_refused(bit: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="wiretale-test-"))  # where others may go, as they may not in tmp_path
    try:
        folder.chmod(0o755)
        if os.statvfs(folder).f_flag & os.ST_NOSUID:
            pytest.skip(f"{folder} is on a file system without set-user-ID bits")
        copy = Path(shutil.copy(PROGRAM, folder))
        copy.chmod(0o755 | bit)
        words = [str(copy), "-i", "lo", "-w", "-", "-a", "duration:1s"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, user=ORDINARY, group=ORDINARY)
    except PermissionError as error:
        pytest.skip(str(error))
    finally:
        shutil.rmtree(folder)
    assert done.returncode == 5 and done.stderr.count("\n") == 1, done.stderr
    assert "expected no set-user-ID or set-group-ID bit" in done.stderr


# --- the status socket


def test_the_status_socket_alone_is_given_away(link: CaptureLink, tmp_path: Path) -> None:
    """Its folder's owner exchanges the folder all the time; root's files elsewhere stay unchanged."""
    foreign, secret = tmp_path / "theirs", tmp_path / "secret"
    for folder in (foreign, secret):
        folder.mkdir()
        (folder / "place").mkdir()
    os.chown(foreign, ORDINARY, ORDINARY)
    victim = secret / "place" / "status"
    victim.write_text("root's file")
    place, aside, trap = foreign / "place", foreign / "aside", foreign / "trap"
    trap.symlink_to(secret / "place")
    os.chown(trap, ORDINARY, ORDINARY, follow_symlinks=False)
    over = threading.Event()

    def exchange() -> None:
        while not over.is_set():
            for before, after in ((place, aside), (trap, place), (place, trap), (aside, place)):
                before.rename(after)

    exchanging = threading.Thread(target=exchange)
    exchanging.start()
    try:
        for _ in range(15):
            words = [str(PROGRAM), "-i", "lo", "-w", str(link.folder), "--status", str(place / "status")]
            subprocess.run([*words, "-Z", "nobody", "-a", "duration:50ms"], capture_output=True, timeout=60)
            assert victim.stat().st_uid == 0 and victim.read_text() == "root's file"
    finally:
        over.set()
        exchanging.join()
    with link.daemon("--status", str(place / "status")):
        info = (place / "status").lstat()
        assert stat.S_ISSOCK(info.st_mode) and info.st_uid != 0
    trap.rename(foreign / "link")
    messages = refused(4, "-i", "lo", "-w", link.folder, "--status", foreign / "link" / "other", "-a", "duration:1s")
    assert "is reached by a symbolic link of another user" in messages
    assert [entry.name for entry in (secret / "place").iterdir()] == ["status"]


# --- folders


def test_in_a_folder_of_roots_the_capture_has_a_subfolder(link: CaptureLink) -> None:
    link.folder.mkdir(mode=0o755)
    for _ in range(2):  # and uses it again
        with link.daemon() as daemon:
            assert "0" not in users_of(daemon)
            link.send(10)
            assert not daemon.stop()
        (below,) = link.folder.iterdir()
        assert f"files go to {below}" in daemon.messages()
    assert (link.folder.stat().st_uid, below.stat().st_uid == 0) == (0, False)
    assert packets_in(*finished(below)) == 20


def test_one_file_in_a_folder_of_roots_is_all_that_the_capture_has(link: CaptureLink, tmp_path: Path) -> None:
    file = tmp_path / "trace.pcapng"
    with link.daemon(into=file) as daemon:
        assert "0" not in users_of(daemon)
        link.send(10)
        for sent in (signal.SIGUSR1, signal.SIGHUP):  # another file cannot be made
            daemon.process.send_signal(sent)
        link.send(10)
        assert not daemon.stop()
    assert packets_in(file) == 20 and not list(tmp_path.glob(".*"))
    with link.daemon("--wait", interface="in7", into=tmp_path / "none.pcapng", ready="waiting for in7") as daemon:
        wait_until((tmp_path / ".none.pcapng.part").exists, "its file")
        assert not daemon.stop()
    wait_until(lambda: not list(tmp_path.glob("*none*")) and not list(tmp_path.glob(".*")), "no empty file stays", 10)


def test_one_file_that_is_removed_ends_the_capture(link: CaptureLink, tmp_path: Path) -> None:
    with link.daemon(into=tmp_path / "trace.pcapng") as daemon:
        (left,) = tmp_path.glob(".*.part")
        left.unlink()
        assert daemon.process.wait(timeout=60) == 4
    assert f"the file in {tmp_path} was removed" in daemon.messages()


@pytest.mark.parametrize("options", [["-C", "1MB"], ["-z"]])
def test_rotation_is_refused_in_a_folder_of_root(link: CaptureLink, tmp_path: Path, options: list[str]) -> None:
    messages = link.refused(5, *options, into=tmp_path / "trace.pcapng")
    assert f"may not write to the directory {tmp_path}" in messages and messages.count("\n") == 1
    assert not list(tmp_path.glob("*.pcapng*")) and not list(tmp_path.glob(".*"))


def test_a_folder_that_is_moved_is_still_written_to(link: CaptureLink, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    with link.daemon() as daemon:
        link.folder.rename(moved)
        link.folder.mkdir()
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_message("the open directory stays in use")
        link.send(10)
        assert not daemon.stop()
    assert not list(link.folder.iterdir()) and packets_in(*finished(moved)) == 10


def test_a_subfolder_of_another_user_is_refused(link: CaptureLink) -> None:
    (link.folder / "nobody").mkdir(parents=True)
    messages = link.refused(5, "-Z", "nobody")
    assert "is another user's" in messages and messages.count("\n") == 1


@pytest.mark.parametrize("where", ["absent/trace.pcapng", "absent/deeper/", "absent/trace.pcap"])
def test_folders_above_are_never_made(link: CaptureLink, tmp_path: Path, where: str) -> None:
    messages = refused(4, "-i", "lo", "-w", str(tmp_path / where), "-a", "duration:1s")
    assert "No such file or directory" in messages
    assert not list(tmp_path.iterdir())
