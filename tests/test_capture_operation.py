# SPDX-License-Identifier: Apache-2.0
"""wiretale-capture in operation: interfaces that change, folders that are shared, clients that do not read, starts after a kill."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from capture_link import CaptureLink, capture_link, captures_of, finished, missing, total, wait_counted


@pytest.fixture(scope="module")
def link() -> Iterator[CaptureLink]:
    if why_not := missing():
        pytest.skip(why_not)
    with capture_link() as made:
        yield made


# --- interfaces that change


def test_an_interface_that_is_made_again_has_counts_of_its_own(link: CaptureLink, tmp_path: Path) -> None:
    folder, status = tmp_path / "captures", tmp_path / "status"
    link.connect("in7")
    try:
        with link.daemon(tmp_path, "-i", "in7", "-w", str(folder), "--status", str(status)) as daemon:
            link.send(300, interface="out7")
            wait_counted(status, received=300)
            link.disconnect("in7")
            daemon.wait_said("in7 is gone")
            link.connect("in7")
            daemon.wait_said("in7 is there")
            link.send(100, interface="out7")
            line = wait_counted(status, received=400, written=400)
            assert [(one["name"], one["received"]) for one in line["interfaces"]] == [("in7", 400)]
            assert not daemon.stop()
    finally:
        link.disconnect("in7")
    assert total(daemon.said())["written"] == 400
    told = captures_of(*finished(folder))
    assert [(one["name"], one["packets"], one["received"]) for one in told] == [("in7", 300, 300), ("in7", 100, 100)]
    assert all((one["dropped_kernel"], one["dropped_program"]) == (0, 0) for one in told)
