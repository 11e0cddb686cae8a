# SPDX-License-Identifier: Apache-2.0
"""Where -w of wiretale-capture leads: over symbolic links, to devices, FIFOs and sockets, over an older file."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from capture_link import (
    PROGRAM,
    CaptureLink,
    finished,
    packets_in,
    wait_counted,
    wait_until,
)

ORDINARY = 65534  # a user and a group, named or not


# --- an older file


@pytest.mark.parametrize("owner", [ORDINARY, 0])
def test_a_killed_capture_leaves_the_older_file_whole(link: CaptureLink, tmp_path: Path, owner: int) -> None:
    file, status = tmp_path / "trace.pcapng", tmp_path / "status"
    os.chown(tmp_path, owner, owner)
    file.write_text("an older capture")
    options = ("-i", "in0", "-w", str(file), "--overwrite")
    with link.daemon(tmp_path, *options, "--status", str(status)) as daemon:
        link.send(10)
        wait_counted(status, written=10)
        assert daemon.stop(signal.SIGKILL) == -signal.SIGKILL
    assert file.read_text() == "an older capture"
    with link.daemon(tmp_path, *options, "-c", "5") as daemon:
        link.send(5)
        assert not daemon.process.wait(timeout=60)
    assert packets_in(file) == 5
    if owner:  # the killed one's packets have a name of their own; in root's folder they are not recovered
        assert packets_in(tmp_path / "trace-1.pcapng") == 10


def killed(link: CaptureLink, tmp_path: Path, *options: str, packets: int = 10) -> Path:
    """A capture with that many packets in its temporary file, which is the one there is."""
    status = tmp_path / "status-killed"
    status.unlink(missing_ok=True)
    with link.daemon(tmp_path, "-i", "in0", *options, "--status", str(status)) as daemon:
        link.send(packets)
        wait_counted(status, written=packets)
        assert daemon.stop(signal.SIGKILL) == -signal.SIGKILL
    (left,) = Path(options[1]).parent.glob(".*.part")
    return left


@pytest.mark.parametrize("suffix, name", [("", "x.pcapng"), (".zst", "x-1.pcapng.zst")])
def test_a_compressed_file_of_that_name_costs_no_killed_capture(
    link: CaptureLink, tmp_path: Path, suffix: str, name: str
) -> None:
    """It is another capture: the killed one's packets would show in its bytes."""
    folder = tmp_path / "captures"
    folder.mkdir()
    os.chown(folder, ORDINARY, ORDINARY)
    with link.daemon(tmp_path, "-i", "in0", "-w", str(folder / "x.pcapng.zst"), "-c", "7") as daemon:
        link.send(7)
        assert not daemon.process.wait(timeout=60)
    killed(link, tmp_path, "-w", f"{folder}/x.pcapng{suffix}", "--overwrite")
    options = ("-z",) if suffix else ()
    with link.daemon(tmp_path, "-i", "in0", "-w", str(folder / "y.pcapng"), *options) as daemon:
        wait_until((folder / name).exists, "the recovered file")
        assert not daemon.stop()
    assert packets_in(folder / "x.pcapng.zst") == 7
    assert packets_in(folder / name) == 10 and not list(folder.glob(".*.part"))


def test_only_duplicates_are_removed(link: CaptureLink, tmp_path: Path) -> None:
    """Copies of files that a kill in the middle of compression leaves, and foreign files of such names."""
    folder = tmp_path / "captures"
    folder.mkdir()
    os.chown(folder, ORDINARY, ORDINARY)
    for name in ("done.pcapng", "half.pcapng.zst"):
        with link.daemon(tmp_path, "-i", "in0", "-w", str(folder / name), "-c", "3000") as daemon:
            link.send(3000)
            assert not daemon.process.wait(timeout=60)
    whole = (folder / "done.pcapng").read_bytes()
    compressed = subprocess.run(["zstd", "-cq"], input=whole, stdout=subprocess.PIPE, check=True).stdout
    noise = os.urandom(5000)
    (folder / "done.pcapng").rename(folder / ".done.pcapng.part")
    files = {
        "done.pcapng.zst": compressed,  # published; its original was to be removed next
        ".begun.pcapng.part": whole,
        ".begun.pcapng.zst.part": compressed[: len(compressed) * 2 // 3] if len(compressed) > 200_000 else b"",
        ".foo.pcapng.zst.part": noise,
        ".bar.pcapng.zst.part": compressed,  # of nothing that is there
        ".baz.pcapng.part": noise,
        "baz.pcapng.zst": noise,
        ".half.pcapng.part": whole,
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)
        os.chown(folder / name, ORDINARY, ORDINARY)
    with link.daemon(tmp_path, "-i", "in0", "-w", str(folder / "next.pcapng"), "-c", "1") as daemon:
        link.send(1)
        assert not daemon.process.wait(timeout=60)
    foreign = {".foo.pcapng.zst.part", ".bar.pcapng.zst.part", ".baz.pcapng.part"}
    assert {path.name for path in folder.glob(".*")} == foreign
    assert all((folder / name).read_bytes() == files[name] for name in (*foreign, "baz.pcapng.zst"))
    assert not (folder / "done.pcapng").exists()
    assert packets_in(*(folder / name for name in ("done.pcapng.zst", "begun.pcapng", "half.pcapng"))) == 9000
    assert all(name in daemon.said() for name in foreign)


# --- the name at the end


def test_a_file_that_cannot_be_named_is_an_error(link: CaptureLink, tmp_path: Path) -> None:
    folder, status = tmp_path / "captures", tmp_path / "status"
    folder.mkdir()
    os.chown(folder, ORDINARY, ORDINARY)
    options = ("-w", str(folder / "x.pcapng"), "--status", str(status))
    with link.daemon(tmp_path, "-i", "in0", *options) as daemon:
        link.send(10)
        wait_counted(status, written=10)
        folder.chmod(0o500)
        assert daemon.stop() == 4
    assert ".x.pcapng.part: it could not be renamed; the next start publishes it" in daemon.said()
    folder.chmod(0o700)
    with link.daemon(tmp_path, "-i", "in0", "-w", str(folder / "y.pcapng")) as daemon:
        wait_until((folder / "x.pcapng").exists, "its name")
        assert not daemon.stop()
    assert packets_in(folder / "x.pcapng") == 10


def test_without_the_process_that_names_it_a_file_is_an_error(link: CaptureLink, tmp_path: Path) -> None:
    folder, status = tmp_path / "captures", tmp_path / "status"
    folder.mkdir()
    with link.daemon(tmp_path, "-i", "in0", "-w", str(folder / "s.pcapng"), "--status", str(status)) as daemon:
        link.send(10)
        wait_counted(status, written=10)
        mine = daemon.process.pid
        children = [
            int(word)
            for task in Path(f"/proc/{mine}/task").iterdir()
            for word in (task / "children").read_text().split()
        ]
        (keeper,) = [pid for pid in children if Path(f"/proc/{pid}/comm").read_text() == "wiretale-file\n"]
        os.kill(keeper, signal.SIGKILL)
        assert daemon.stop() == 4
    assert "wiretale-file, has ended; no later start publishes it" in daemon.said()
    (left,) = folder.glob(".*.part")
    assert packets_in(left) == 10


def test_the_lock_of_a_killed_capture_holds_no_other_user_up(link: CaptureLink, tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    folder.mkdir()
    os.chown(folder, ORDINARY, ORDINARY)
    killed(link, tmp_path, "-w", str(folder / "x.pcapng"))
    lock = folder / ".x.pcapng.lock"
    assert lock.stat().st_uid == ORDINARY
    os.chown(folder, ORDINARY - 1, ORDINARY - 1)
    with link.daemon(tmp_path, "-i", "in0", "-w", str(folder / "x.pcapng"), "-c", "5") as daemon:
        link.send(5)
        assert not daemon.process.wait(timeout=60)
    assert packets_in(folder / "x.pcapng") == 5 and not lock.exists()
    lock.write_text("")
    lock.chmod(0o600)  # unreadable
    with link.daemon(tmp_path, "-i", "in0", "-w", str(folder / "x.pcapng"), "--overwrite", ready=None) as daemon:
        assert daemon.process.wait(timeout=60) == 5
    assert f"cannot open lock file {lock}: Permission denied" in daemon.said()


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
        with link.daemon(tmp_path, "-i", "in0", "-w", str(tmp_path / name), "-c", "10") as daemon:
            link.send(10)
            assert not daemon.process.wait(timeout=60)
        assert packets_in(place / file) == 10
    (tmp_path / "captures").symlink_to("place/captures")
    with link.daemon(tmp_path, "-i", "in0", "-w", str(tmp_path / "captures"), "-c", "10") as daemon:
        link.send(10)
        assert not daemon.process.wait(timeout=60)
    assert packets_in(*finished(place / "captures")) == 10
    assert all((tmp_path / name).is_symlink() for name in links)
    (tmp_path / "old.pcapng").symlink_to("place/old.pcapng")
    with link.daemon(tmp_path, "-i", "in0", "-w", str(tmp_path / "old.pcapng"), ready=None) as daemon:
        assert daemon.process.wait(timeout=60) == 4
    assert "old.pcapng exists" in daemon.said()
    assert (place / "old.pcapng").read_text() == "an older capture"


def lead(path: Path, target: str, owner: int) -> None:
    path.symlink_to(target)
    os.chown(path, owner, owner, follow_symlinks=False)


@pytest.mark.parametrize("theirs", [True, False])
def test_links_of_others_lead_only_to_files_of_theirs(link: CaptureLink, tmp_path: Path, theirs: bool) -> None:
    place = tmp_path / "place"
    place.mkdir()
    os.mkfifo(place / "fifo")
    for path in (place, place / "fifo"):
        os.chown(path, ORDINARY if theirs else 0, ORDINARY if theirs else 0)
    lead(tmp_path / "link", "place", ORDINARY)
    lead(tmp_path / "new.pcapng", "place/new.pcapng", ORDINARY)
    lead(tmp_path / "fifo", "place/fifo", ORDINARY)
    reader = os.open(place / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    try:
        for name in ("new.pcapng", "link/two.pcapng", "link", "link/", "fifo"):
            with link.daemon(tmp_path, "-i", "in0", "-w", f"{tmp_path}/{name}", "-c", "1", ready=None) as daemon:
                if theirs:
                    daemon.wait_said("capturing\n")
                    link.send(1)
                assert daemon.process.wait(timeout=60) == (0 if theirs else 4)
            assert theirs or "is reached by a symbolic link of another user" in daemon.said()
        assert bool(os.read(reader, 4)) == theirs
    finally:
        os.close(reader)
    assert len(finished(place)) == (4 if theirs else 0)


@pytest.mark.parametrize("name", ["work/caps/new.pcapng", "work/newdir/", "direct/.", "direct/../caps/g.pcapng"])
def test_no_link_of_another_user_leads_roots_capture_into_roots_folder(
    link: CaptureLink, tmp_path: Path, name: str
) -> None:
    theirs, secret = tmp_path / "theirs", tmp_path / "secret"
    caps = secret / "caps"
    for folder in (theirs, secret, caps):
        folder.mkdir(mode=0o700)
    os.chown(theirs, ORDINARY, ORDINARY)
    (caps / "old.pcapng").write_text("root's file")
    lead(theirs / "work", "../secret", ORDINARY)
    lead(theirs / "direct", "../secret/caps", ORDINARY)
    for where in (name, "work/caps/old.pcapng"):
        words = [str(PROGRAM), "-i", "lo", "-w", f"{theirs}/{where}", "-a", "duration:1s", "--overwrite"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=20)
        assert done.returncode == 4 and "is reached by a symbolic link of another user" in done.stderr
        assert done.stderr.count("\n") == 1, done.stderr
    assert [entry.name for entry in secret.iterdir()] == ["caps"] and secret.stat().st_uid == 0
    assert [entry.name for entry in caps.iterdir()] == ["old.pcapng"]
    assert (caps / "old.pcapng").read_text() == "root's file"
    (tmp_path / "own").symlink_to("secret")  # root's link may lead there
    where = f"{tmp_path}/own/caps/./new.pcapng"
    with link.daemon(tmp_path, "-i", "in0", "-w", where, "-c", "1") as daemon:
        link.send(1)
        assert not daemon.process.wait(timeout=60)
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
    for where, said in (
        ("shared/x.pcapng", "is a symbolic link of another user"),
        ("gone", "No such file or directory"),
        ("loop.pcapng", "too many symbolic links"),
    ):
        done = subprocess.run(
            [PROGRAM, "-i", "lo", "-w", f"{tmp_path}/{where}"], capture_output=True, text=True, timeout=20
        )
        assert done.returncode == 4 and said in done.stderr and done.stderr.count("\n") == 1, done.stderr
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
        with link.daemon(tmp_path, "-i", "in0", "-w", where, "-c", "50", stdout=target) as daemon:
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
    options = ("-i", "in0", "-w", str(where), "-c", "50")
    with link.daemon(tmp_path, *options, pass_fds=[write_end]) as daemon:
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
        words = [PROGRAM, "-i", "lo", "-w", str(tmp_path / "fifo"), *option.split()]
        done = subprocess.run(words, capture_output=True, text=True, timeout=20)
        assert done.returncode == 2 and "fifo is one stream: expected no rotation" in done.stderr
