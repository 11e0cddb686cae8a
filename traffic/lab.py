# SPDX-License-Identifier: Apache-2.0
"""Labs: made, kept and taken down."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wiretale.analyzer.errors import WiretaleError
from wiretale.traffic.lab_hosts import check_free, make_hosts, namespace_exists, processes_in, remove_hosts
from wiretale.traffic.lab_link import TRUTH, check_ended_well, end_program, make_folder, start_link, write_truth
from wiretale.traffic.lab_profile import Profile
from wiretale.traffic.lab_space import end_space, is_elsewhere, processes_of
from wiretale.traffic.lab_state import Lab, TakenError, check_name, forget_lab, known_labs, save_lab


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
    lab = Lab(name, profile.name, profile.description, str(place.resolve()), keeps=folder is not None)
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
    if is_elsewhere(lab):
        end_space(lab.space)
    remove_hosts(lab)
    forget_lab(lab)
    remove_folder(lab)
    folder = Path(lab.folder)
    if lab.keeps and not lab.owner and (folder / TRUTH).is_file():
        check_ended_well(folder)
        write_truth(folder, folder / "truth.parquet")


@contextmanager
def lab_for_run(profile: Profile, folder: Path) -> Iterator[Lab]:
    """A lab as long as the body runs; the link's truth is in the folder then."""
    owner = os.getpid()
    lab = Lab(f"run-{owner}", profile.name, profile.description, str(folder.resolve()), owner=owner)
    for dead in [known for known in known_labs() if known.name == lab.name]:  # its number is ours now
        lab_down(dead)
    write_down(lab)
    try:
        make_hosts(lab, profile)
        link = start_link(lab, profile, folder)
        try:
            yield lab
        finally:
            end_program(link)
        check_ended_well(folder)
    finally:
        lab_down(lab)


def lab_status(lab: Lab) -> str:
    """up, or what is left of it."""
    if is_elsewhere(lab):
        if not processes_of(lab.space):
            return "gone"
        return "up" if lab.owner and Path(f"/proc/{lab.owner}").exists() else "broken"
    hosts = [namespace_exists(lab, host) for host in ("sender", "tracer", "receiver")]
    if not any(hosts):
        return "gone"
    return "up" if all(hosts) and processes_in(lab) else "broken"
