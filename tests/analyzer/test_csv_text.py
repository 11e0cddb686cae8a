# SPDX-License-Identifier: Apache-2.0
"""CSV on a stream."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

import wiretale
from wiretale.reports.export import csv_text


@pytest.mark.parametrize("rows_at_once", [1, 3, 4096])
def test_rows_are_those_of_the_table(sample: Path, monkeypatch: pytest.MonkeyPatch, rows_at_once: int) -> None:
    monkeypatch.setattr(csv_text, "ROWS_AT_ONCE", rows_at_once)
    trace = wiretale.analyze(sample)
    for name in ("interfaces", "flows", "directions", "findings"):
        out = io.StringIO()
        csv_text.write_csv(trace.table(name), out)
        found = list(csv.DictReader(io.StringIO(out.getvalue())))
        rows = trace.table(name).rows()
        assert found == [{k: "" if v is None else str(v) for k, v in row.items()} for row in rows]
