# SPDX-License-Identifier: Apache-2.0
"""Output files of a lab in a folder of the user; every check must run before anything is made."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from wiretale.reports.export.destination import check_folder
from wiretale.traffic.lab.capture import POINTS
from wiretale.traffic.lab.link import TRUTH

LAB_FILES = (TRUTH, "truth.parquet", "link.out", "link.log")
RUN_FILES = (*LAB_FILES, *(f"capture-{point}.{kind}" for point in POINTS for kind in ("out", "log")), "result.json")
REPORT_FILES = ("report.html", "results.json")
CAPTURES = ("*.pcap", "*.pcapng")


def old_captures(folder: Path) -> list[str]:
    """Returns the captures that a run in this folder would remove."""
    found = (path for point in POINTS for kind in CAPTURES for path in (folder / point).glob(kind) if path.is_file())
    return [str(path.relative_to(folder)) for path in found]


def check_lab_folder(folder: Path, inputs: Iterable[str], overwrite: bool) -> None:
    """Checks the folder of `lab up`. Raises as check_folder()."""
    check_folder(folder, LAB_FILES, inputs, overwrite)


def check_run_folders(folder: Path, runs: Iterable[str], inputs: Iterable[str], overwrite: bool) -> None:
    """Checks the folders of `lab run` below `folder`. Raises as check_folder()."""
    inputs = list(inputs)
    check_folder(folder, REPORT_FILES, inputs, overwrite)
    for run in runs:
        place = folder / run
        check_folder(place, [*RUN_FILES, *old_captures(place)], inputs, overwrite)
