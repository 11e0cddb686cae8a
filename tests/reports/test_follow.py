# SPDX-License-Identifier: Apache-2.0
"""`wiretale view --follow`: the page of a capture that is being written, in a browser."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import wiretale
from checkout import SAMPLES
from plain_wire import Connection, Wire
from processes import refusal
from report_page import Page
from rotated_files import publish, rotated
from viewer import viewing
from wiretale.analyzer.options import NO_OPTIONS
from wiretale.reports.live.follow import Follow

pytestmark = pytest.mark.xdist_group("view")

LOSSES = SAMPLES / "tcp_losses.pcap"


def two_connections() -> Wire:
    """One of 14 s, whose client resends once, and from the second file on another one that is never answered."""
    wire = Wire()
    long, at = Connection(wire, 40_000).open(0.0), 0
    for step in range(140):
        long.data(100.0 * step + 50, at)
        if step == 20:
            long.data(100.0 * step + 250, at)
        at += 1460
        long.ack(100.0 * step + 90, at)
    for ms in (6_000, 7_000, 9_000):
        Connection(wire, 41_000).send(ms, 0, 0, flags=2)
    return wire


def until(page: Page, expression: str) -> None:
    """Waits for the pages that follow each other."""
    from playwright.sync_api import Error

    for _ in range(20):
        with suppress(Error):  # the page was replaced meanwhile
            page.until(f"document.body.dataset.ready && ({expression})")
            return


ROWS = "document.querySelectorAll('#flows tbody tr').length"


def test_the_page_shows_each_newer_answer_and_keeps_what_was_chosen(tmp_path: Path, page: Page) -> None:
    captures, files = tmp_path / "captures", rotated(two_connections(), 5)
    captures.mkdir()
    with viewing("--follow", captures, folder=tmp_path) as viewer:
        page.page.goto(viewer.url)
        assert "No file of the capture is finished yet" in page.page.content()
        publish(captures, *files[0])
        until(page, f"{ROWS} === 1")
        publish(captures, *files[1])
        until(page, f"{ROWS} === 2 && document.getElementById('live').textContent.startsWith('Live: as of ')")
        page.page.locator("#flows tbody tr", has_text="41000").click()
        publish(captures, *files[2])
        page.page.locator("#live-show").click()
        until(page, "data.files.length === 3 && document.getElementById('h-flow').textContent.includes('41000')")
        version = page.page.evaluate("data.live")
        (flow,) = [row["flow"] for row in wiretale.analyze(captures).flows if row["source_port"] == 40_000]
        answer = viewer.answer("packets", flow=flow, live=version)
        assert answer["count"] == sum(len(packets) for _, packets in files) - 3
        assert viewer.answer("frame", flow=flow, live=version, interface=2, frame=1)["list"][0]["frame"] == 1
        assert viewer.end() == (0, "")
    assert page.complaints == [] and not list(tmp_path.glob("wiretale-view-*"))


def test_a_file_without_a_packet_is_no_problem_but_an_old_one_is(tmp_path: Path) -> None:
    lines: list[str] = []
    follow = Follow(tmp_path, tmp_path / "now", NO_OPTIONS, 10**10, lines.append)
    content = LOSSES.read_bytes()
    (tmp_path / "a.pcap").write_bytes(content)
    for first_ns, path in follow.files():
        follow.read(first_ns + 1, path)  # as if it began 1 ns later
    (tmp_path / "b.pcap").write_bytes(content[:24])
    assert follow.files() == [] and lines == []
    (tmp_path / "c.pcap").write_bytes(content)
    assert follow.files() == [] and lines == [f"{tmp_path / 'c.pcap'}: begins before a file that was read: left out"]


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["--follow", "."], 2, "--follow takes no -o"),
        (["--last", "5m", "x.pcap"], 2, "--last needs --follow"),
        (["--follow", "a", "b"], 2, "expected one directory"),
        (["--follow", "nowhere"], 4, "expected one directory"),
    ],
)
def test_wrong_use_is_one_line(wiretale_run: Any, words: list[str], code: int, text: str, tmp_path: Path) -> None:
    words = [*words, *(["-o", str(tmp_path / "o")] if "-o" in text else [])]
    assert text in refusal(wiretale_run("view", *words), code)
