# SPDX-License-Identifier: Apache-2.0
"""Compares the rows of all tables of captures, analyzed by 1, 2, 3 and 8 threads.

usage: same_rows.py PATH...    files and folders; exit 1 if rows differ
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from wiretale.analyzer import _core
from wiretale.analyzer.options import AnalysisOptions, ReadingMode
from wiretale.analyzer.table import AFTER_PASS, KEPT_TABLES

JOBS = (1, 2, 3, 8)
STEP_PACKETS = 1 << 20


def tables_of(path: Path, jobs: int) -> dict[str, str] | None:
    """Returns the digest of each table, None if the file is no capture."""
    try:
        core = _core.Analysis([str(path)], [str(path)], AnalysisOptions(jobs=jobs), ReadingMode())
    except _core.Error:
        return None
    while core.step(STEP_PACKETS):
        pass
    core.finish()
    names = [name for name in KEPT_TABLES if name not in AFTER_PASS]
    return {name: hashlib.sha256(b"".join(core.table(name).json())).hexdigest() for name in names}


def differences(path: Path) -> list[str]:
    serial = tables_of(path, 1)
    if serial is None:
        return []
    parallel = {f"{jobs} jobs": tables_of(path, jobs) or {} for jobs in JOBS[1:]}
    return [
        f"{path}: {name} differs with {how}"
        for how, rows in parallel.items()
        for name in serial
        if rows[name] != serial[name]
    ]


def main() -> int:
    inputs = [Path(text) for text in sys.argv[1:]]
    paths = sorted(p for source in inputs for p in (source.rglob("*") if source.is_dir() else [source]) if p.is_file())
    failed = 0
    for path in paths:
        for line in differences(path):
            print(line, file=sys.stderr)
            failed = 1
    print(f"{len(paths)} files compared")
    return failed


if __name__ == "__main__":
    sys.exit(main())
