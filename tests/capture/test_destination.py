# SPDX-License-Identifier: Apache-2.0
"""Where -w of wiretale-capture leads: over symbolic links, to devices, FIFOs and sockets, over an older file."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from capture_link import ORDINARY, CaptureLink, finished, packets_in, refused
from processes import wait_until

pytestmark = pytest.mark.xdist_group("capture")

# --- an older file


@pytest.mark.parametrize("owner", [ORDINARY, 0])
def test_a_killed_capture_leaves_the_older_file_whole(link: CaptureLink, tmp_path: Path, owner: int) -> None:
    file = tmp_path / "trace.pcapng"
    os.chown(tmp_path, owner, owner)
    file.write_text("an older capture")
    link.killed(10, "--overwrite", into=file)
    assert file.read_text() == "an older capture"
    link.records(5, "--overwrite", "-c", "5", into=file, ends=True)
    assert packets_in(file) == 5
    if owner:  # the killed one's packets have a name of their own; in root's folder they are not recovered
        assert packets_in(tmp_path / "trace-1.pcapng") == 10


@pytest.mark.parametrize("suffix, name", [("", "x.pcapng"), (".zst", "x-1.pcapng.zst")])
def test_a_compressed_file_of_that_name_costs_no_killed_capture(link: CaptureLink, suffix: str, name: str) -> None:
    """It is another capture: the killed one's packets would show in its bytes."""
    folder = link.make_folder()
    link.records(7, "-c", "7", into=folder / "x.pcapng.zst", ends=True)
    link.killed(10, "--overwrite", into=folder / f"x.pcapng{suffix}")
    with link.daemon(*["-z"] * bool(suffix), into=folder / "y.pcapng") as daemon:
        wait_until((folder / name).exists, "the recovered file")
        assert not daemon.stop()
    assert packets_in(folder / "x.pcapng.zst") == 7
    assert packets_in(folder / name) == 10 and not list(folder.glob(".*.part"))


def test_only_duplicates_are_removed(link: CaptureLink) -> None:
    """Copies of files that a kill in the middle of compression leaves, and foreign files of such names."""
    link.make_folder()
    for name in ("done.pcapng", "half.pcapng.zst"):
        link.records(3000, "-c", "3000", into=link.folder / name, ends=True)
    capture_bytes = (link.folder / "done.pcapng").read_bytes()
    compressed = subprocess.run(["zstd", "-cq"], input=capture_bytes, stdout=subprocess.PIPE, check=True).stdout
    noise = os.urandom(5000)
    (link.folder / "done.pcapng").rename(link.folder / ".done.pcapng.part")
    files = {
        "done.pcapng.zst": compressed,  # published; its original was to be removed next
        ".begun.pcapng.part": capture_bytes,
        ".begun.pcapng.zst.part": compressed[: len(compressed) * 2 // 3] if len(compressed) > 200_000 else b"",
        ".foo.pcapng.zst.part": noise,
        ".bar.pcapng.zst.part": compressed,  # of nothing that is there
        ".baz.pcapng.part": noise,
        "baz.pcapng.zst": noise,
        ".half.pcapng.part": capture_bytes,
    }
    for name, data in files.items():
        (link.folder / name).write_bytes(data)
        os.chown(link.folder / name, ORDINARY, ORDINARY)
    daemon = link.records(1, "-c", "1", into=link.folder / "next.pcapng", ends=True)
    foreign = {".foo.pcapng.zst.part", ".bar.pcapng.zst.part", ".baz.pcapng.part"}
    assert {path.name for path in link.folder.glob(".*.part")} == foreign
    assert all((link.folder / name).read_bytes() == files[name] for name in (*foreign, "baz.pcapng.zst"))
    assert not (link.folder / "done.pcapng").exists()
    assert packets_in(*(link.folder / name for name in ("done.pcapng.zst", "begun.pcapng", "half.pcapng"))) == 9000
    assert all(name in daemon.messages() for name in foreign)


# --- the name at the end


def test_a_file_that_cannot_be_named_is_an_error(link: CaptureLink) -> None:
    link.make_folder()
    with link.daemon(into=link.folder / "x.pcapng", watched=True) as daemon:
        link.deliver(10)
        link.folder.chmod(0o500)
        assert daemon.stop() == 4
    assert ".x.pcapng.part: it could not be renamed; the next start publishes it" in daemon.messages()
    link.folder.chmod(0o700)
    with link.daemon(into=link.folder / "y.pcapng") as daemon:
        wait_until((link.folder / "x.pcapng").exists, "its name")
        assert not daemon.stop()
    assert packets_in(link.folder / "x.pcapng") == 10


def test_without_the_process_that_names_it_a_file_is_an_error(link: CaptureLink) -> None:
    link.folder.mkdir()
    with link.daemon(watched=True, into=link.folder / "s.pcapng") as daemon:
        link.deliver(10)
        daemon_pid = daemon.process.pid
        children = [
            int(word)
            for task in Path(f"/proc/{daemon_pid}/task").iterdir()
            for word in (task / "children").read_text().split()
        ]
        (keeper,) = [pid for pid in children if Path(f"/proc/{pid}/comm").read_text() == "wiretale-file\n"]
        os.kill(keeper, signal.SIGKILL)
        assert daemon.stop() == 4
    assert "wiretale-file, has ended; no later start publishes it" in daemon.messages()
    (left,) = link.folder.glob(".*.part")
    assert packets_in(left) == 10


def test_the_lock_of_a_killed_capture_holds_no_other_user_up(link: CaptureLink) -> None:
    link.make_folder()
    link.killed(10, into=link.folder / "x.pcapng")
    lock = link.folder / ".x.pcapng.lock"
    assert lock.stat().st_uid == ORDINARY
    os.chown(link.folder, ORDINARY - 1, ORDINARY - 1)
    link.records(5, "-c", "5", into=link.folder / "x.pcapng", ends=True)
    assert packets_in(link.folder / "x.pcapng") == 5 and not lock.exists()
    lock.write_text("")
    lock.chmod(0o600)  # unreadable
    messages = link.refused(5, "--overwrite", into=link.folder / "x.pcapng")
    assert f"cannot open lock file {lock}: Permission denied" in messages


# --- symbolic links


def test_links_of_ones_own_are_followed(link: CaptureLink, tmp_path: Path) -> None:
    place = tmp_path / "place"
    for folder in (place, place / "captures"):
        folder.mkdir()
        os.chown(folder, ORDINARY, ORDINARY)
    (place / "old.pcapng").write_text("an older capture")
    links = {
        "new.pcapng": "place/first.pcapng",  # that is not there
        "chain.pcapng": "latest.pcapng",
        "latest.pcapng": str(place / "latest.pcapng"),
        "unnamed.pcapng": "place/unnamed",
        "folder": "place",
    }
    for name, target in links.items():
        (tmp_path / name).symlink_to(target)
    for name, file in (
        ("new.pcapng", "first.pcapng"),
        ("chain.pcapng", "latest.pcapng"),
        ("unnamed.pcapng", "unnamed"),
        ("folder/inner.pcapng", "inner.pcapng"),
    ):
        link.records(10, "-c", "10", into=tmp_path / name, ends=True)
        assert packets_in(place / file) == 10
    link.folder.symlink_to("place/captures")
    link.records(10, "-c", "10", ends=True)
    assert packets_in(*finished(place / "captures")) == 10
    assert all((tmp_path / name).is_symlink() for name in links)
    (tmp_path / "old.pcapng").symlink_to("place/old.pcapng")
    assert "old.pcapng exists" in link.refused(4, into=tmp_path / "old.pcapng")
    assert (place / "old.pcapng").read_text() == "an older capture"


def lead(path: Path, target: str, owner: int) -> None:
    path.symlink_to(target)
    os.chown(path, owner, owner, follow_symlinks=False)


@pytest.mark.parametrize("foreign", [True, False])
def test_links_of_others_lead_only_to_files_of_theirs(link: CaptureLink, tmp_path: Path, foreign: bool) -> None:
    place = tmp_path / "place"
    place.mkdir()
    os.mkfifo(place / "fifo")
    for path in (place, place / "fifo"):
        os.chown(path, ORDINARY if foreign else 0, ORDINARY if foreign else 0)
    lead(tmp_path / "link", "place", ORDINARY)
    lead(tmp_path / "new.pcapng", "place/new.pcapng", ORDINARY)
    lead(tmp_path / "fifo", "place/fifo", ORDINARY)
    reader = os.open(place / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    try:
        for name in ("new.pcapng", "link/two.pcapng", "link", "link/", "fifo"):
            with link.daemon("-c", "1", into=f"{tmp_path}/{name}", ready=None) as daemon:
                if foreign:
                    daemon.wait_message("capturing\n")
                    link.send(1)
                assert daemon.process.wait(timeout=60) == (0 if foreign else 4)
            assert foreign or "is reached by a symbolic link of another user" in daemon.messages()
        assert bool(os.read(reader, 4)) == foreign
    finally:
        os.close(reader)
    assert len(finished(place)) == (4 if foreign else 0)


@pytest.mark.parametrize("name", ["work/caps/new.pcapng", "work/newdir/", "direct/.", "direct/../caps/g.pcapng"])
def test_no_link_of_another_user_leads_roots_capture_into_roots_folder(
    link: CaptureLink, tmp_path: Path, name: str
) -> None:
    foreign, secret = tmp_path / "theirs", tmp_path / "secret"
    caps = secret / "caps"
    for folder in (foreign, secret, caps):
        folder.mkdir(mode=0o700)
    os.chown(foreign, ORDINARY, ORDINARY)
    (caps / "old.pcapng").write_text("root's file")
    lead(foreign / "work", "../secret", ORDINARY)
    lead(foreign / "direct", "../secret/caps", ORDINARY)
    for where in (name, "work/caps/old.pcapng"):
        messages = refused(4, "-i", "lo", "-w", f"{foreign}/{where}", "-a", "duration:1s", "--overwrite")
        assert "is reached by a symbolic link of another user" in messages
    assert [entry.name for entry in secret.iterdir()] == ["caps"] and secret.stat().st_uid == 0
    assert [entry.name for entry in caps.iterdir()] == ["old.pcapng"]
    assert (caps / "old.pcapng").read_text() == "root's file"
    (tmp_path / "own").symlink_to("secret")  # root's link may lead there
    link.records(1, "-c", "1", into=f"{tmp_path}/own/caps/./new.pcapng", ends=True)
    assert packets_in(caps / "new.pcapng") == 1


def test_a_link_of_another_user_in_a_shared_folder_is_refused(link: CaptureLink, tmp_path: Path) -> None:
    shared, place = tmp_path / "shared", tmp_path / "place"
    for folder, mode in ((shared, 0o1777), (place, 0o755)):
        folder.mkdir()
        folder.chmod(mode)
    os.chown(place, ORDINARY, ORDINARY)
    lead(shared / "x.pcapng", "../place/x.pcapng", ORDINARY)
    lead(tmp_path / "gone", "nowhere", 0)
    lead(tmp_path / "loop.pcapng", "loop.pcapng", 0)
    for where, messages in (
        ("shared/x.pcapng", "is a symbolic link of another user"),
        ("gone", "No such file or directory"),
        ("loop.pcapng", "too many symbolic links"),
    ):
        assert messages in refused(4, "-i", "lo", "-w", f"{tmp_path}/{where}")
    assert not (tmp_path / "nowhere").exists() and not list(place.iterdir())


# --- streams


STREAMS = ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link")


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("kind", ["pipe", "file"])
def test_standard_output_by_its_names_is_a_stream(link: CaptureLink, tmp_path: Path, name: str, kind: str) -> None:
    (tmp_path / "link").symlink_to("/dev/stdout")
    file = tmp_path / "stream.pcapng"
    where = str(tmp_path / name)  # an absolute name stays unchanged
    with file.open("wb") as out:
        target = out if kind == "file" else subprocess.PIPE
        with link.daemon("-c", "50", into=where, stdout=target) as daemon:
            link.send(60)
            data, _ = daemon.process.communicate(timeout=60)
            assert not daemon.process.returncode
        if kind == "pipe":
            out.write(data)
        assert os.path.samestat(os.fstat(out.fileno()), file.stat())  # nothing took its name
    assert packets_in(file) == 50


@pytest.mark.parametrize("kind", ["FIFO", "socket", "descriptor"])
@pytest.mark.parametrize("linked", [False, True])
def test_devices_and_pipes_get_the_stream(link: CaptureLink, tmp_path: Path, kind: str, linked: bool) -> None:
    node, file = tmp_path / "node.pcapng", tmp_path / "stream.pcapng"
    listener = socket.socket(socket.AF_UNIX)
    read_end, write_end = os.pipe()
    if kind == "socket":
        listener.bind(str(node))
        listener.listen()
    elif kind == "FIFO":
        os.mkfifo(node)
        os.close(read_end)
        read_end = os.open(node, os.O_RDONLY | os.O_NONBLOCK)
    else:  # as a shell's >(...)
        node = Path(f"/dev/fd/{write_end}")
    (tmp_path / "link.pcapng").symlink_to(node)
    where = tmp_path / "link.pcapng" if linked and kind != "descriptor" else node
    with link.daemon("-c", "50", into=where, pass_fds=[write_end]) as daemon:
        os.close(write_end)
        if kind == "socket":
            os.close(read_end)
            read_end = listener.accept()[0].detach()
        link.send(50)
        assert not daemon.process.wait(timeout=60)
    os.set_blocking(read_end, True)
    with open(read_end, "rb") as stream:
        file.write_bytes(stream.read())
    listener.close()
    assert packets_in(file) == 50
    assert node.exists() is (kind != "descriptor") and not list(tmp_path.glob(".*"))


def test_a_stream_has_no_further_files(link: CaptureLink, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for option in ("-C 1MB", "-z", "--on-close true"):
        messages = refused(2, "-i", "lo", "-w", tmp_path / "fifo", *option.split())
        assert "fifo is one stream: expected no rotation" in messages
