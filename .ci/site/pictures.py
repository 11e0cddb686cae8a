# SPDX-License-Identifier: Apache-2.0
"""Takes the screenshots of README.md and docs/ from reports of samples: python .ci/site/pictures.py."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

import wiretale

ROOT = Path(__file__).parents[2]
#: file, sample, first element in the picture, height in pixels
PICTURES = (
    ("docs/report.png", "tcp_losses.pcap", "", 1500),
    ("docs/start/report-top.png", "tail_loss_probes.pcapng", "", 900),
    ("docs/start/report-flow.png", "tail_loss_probes.pcapng", "#flow-view", 1100),
)
WIDTH = 1440


def take_picture(browser: Browser, page_file: Path, top: str, picture: Path, height: int) -> None:
    """Saves the part of a report that begins with an element."""
    page = browser.new_page(viewport={"width": WIDTH, "height": height})
    page.goto(page_file.as_uri())
    page.wait_for_timeout(1500)  # Plotly draws after the page has loaded
    if page.locator("#undock").is_visible():  # the frame of the answer would cover the plots
        page.locator("#undock").click()
        page.wait_for_timeout(500)
    place = page.locator(top or "body").first
    place.evaluate("(node, above) => scrollTo(0, node.getBoundingClientRect().top + scrollY - above)", 8 if top else 0)
    page.wait_for_timeout(500)
    page.screenshot(path=picture)
    page.close()


def main() -> int:
    os.chdir(ROOT)  # the commands in the pictures have the paths that a reader has
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, sample, top, height in PICTURES:
            file = Path(folder) / f"{sample}.html"
            if not file.exists():
                wiretale.analyze(f"sample_pcaps/{sample}").report(file)
            take_picture(browser, file, top, ROOT / name, height)
    return 0


if __name__ == "__main__":
    sys.exit(main())
