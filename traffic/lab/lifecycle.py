# SPDX-License-Identifier: Apache-2.0
"""Labs: made, kept and taken down."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wiretale.analyzer.errors import MissingToolError, WiretaleError
from wiretale.traffic.lab.hosts import check_free, make_hosts, namespace_exists, processes_in, remove_hosts
from wiretale.traffic.lab.link import TRUTH, check_ended_well, end_program, make_folder, start_link, write_truth
from wiretale.traffic.lab.profile import Profile, link_bps
from wiretale.traffic.lab.space import end_space, is_elsewhere, processes_of
from wiretale.traffic.lab.state import (
    HOSTS,
    Lab,
    TakenError,
    check_name,
    forget_lab,
    known_labs,
    mark_ending,
    save_lab,
    start_time,
)


class LabRemovedError(MissingToolError):
    """The hosts of a run are gone before its end."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the lab {name} was removed while it was in use (`lab down --force`, or `ip netns delete`)")


def write_down(lab: Lab) -> None:
    """Before anything is made. TakenError when another one has that name, of whom nothing is removed."""
    try:
        save_lab(lab)
        try:
            check_free(lab)
        except TakenError:
            forget_lab(lab)
            raise
    except WiretaleError:
        remove_folder(lab)
        raise


def lab_up(profile: Profile, name: str, folder: Path | None = None) -> Lab:
    """Makes a lab; what was made is removed again when something fails."""
    check_name(name)
    place = folder or Path(tempfile.mkdtemp(prefix=f"wiretale-lab-{name}-"))
    lab = Lab(
        *(name, profile.name, profile.description, str(place.resolve())),
        keeps=folder is not None,
        link_bps=link_bps(profile) or 0,
    )
    write_down(lab)
    try:
        make_hosts(lab, profile)
        make_folder(place)
        start_link(lab, profile, place)
    except BaseException:
        lab_down(lab)
        raise
    return lab


def remove_folder(lab: Lab) -> None:
    """The one that was made for it, if it is not the user's."""
    if not lab.keeps and Path(lab.folder).name.startswith("wiretale-lab-"):
        shutil.rmtree(lab.folder, ignore_errors=True)


def lab_down(lab: Lab) -> None:
    """Removes all that a lab made, but for the files of a run."""
    if lab.is_in_use and lab.owner != os.getpid():
        mark_ending(lab)
    if is_elsewhere(lab):
        end_space(lab.space)
    remove_hosts(lab)
    forget_lab(lab)
    remove_folder(lab)
    folder = Path(lab.folder)
    if lab.keeps and not lab.owner and (folder / TRUTH).is_file():
        check_ended_well(folder)
        write_truth(folder, folder / "truth.parquet")


def start_watcher(lab: Lab) -> subprocess.Popen[bytes]:
    """A process that takes the lab down when this one is gone, whatever ended it. It is in no group or session of ours,
    and the end of its standard input, which the kernel closes, is all that it waits for."""
    command = [sys.executable, "-P", "-m", "wiretale.traffic.lab.watch", lab.name, str(lab.created_ns)]
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def end_watcher(watcher: subprocess.Popen[bytes]) -> None:
    """The lab is down: there is nothing left to take down."""
    assert watcher.stdin
    watcher.stdin.close()
    watcher.wait()


def check_whole(lab: Lab) -> None:
    """LabRemovedError when somebody else removes it, or some of its hosts."""
    written = [known for known in known_labs() if known.name == lab.name and not known.is_ending]
    if not written or not all(namespace_exists(lab, host) for host in HOSTS):
        raise LabRemovedError(lab.name)


@contextmanager
def running_link(lab: Lab, profile: Profile, folder: Path) -> Iterator[None]:
    """The link, as long as the body runs."""
    link = start_link(lab, profile, folder)
    try:
        yield
    finally:
        end_program(link)


@contextmanager
def lab_for_run(profile: Profile, folder: Path) -> Iterator[Lab]:
    """A lab as long as the body runs; the link's truth is in the folder then."""
    owner = os.getpid()
    lab = Lab(
        *(f"run-{owner}", profile.name, profile.description, str(folder.resolve())),
        owner=owner,
        owner_start=start_time(owner),
        link_bps=link_bps(profile) or 0,
    )
    for dead in [known for known in known_labs() if known.name == lab.name]:  # its number is ours now
        lab_down(dead)
    write_down(lab)
    watcher = start_watcher(lab)
    try:
        make_hosts(lab, profile)
        try:
            with running_link(lab, profile, folder):
                yield lab
        except WiretaleError:
            check_whole(lab)  # then its error is the consequence
            raise
        check_whole(lab)
        check_ended_well(folder)
    finally:
        lab_down(lab)
        end_watcher(watcher)


def lab_status(lab: Lab) -> str:
    """up, or what is left of it."""
    if is_elsewhere(lab):
        if not processes_of(lab.space):
            return "gone"
        return "up" if lab.owner and Path(f"/proc/{lab.owner}").exists() else "broken"
    hosts = [namespace_exists(lab, host) for host in HOSTS]
    if not any(hosts):
        return "gone"
    return "up" if all(hosts) and processes_in(lab) else "broken"
