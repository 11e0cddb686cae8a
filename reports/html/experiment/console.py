# SPDX-License-Identifier: Apache-2.0
"""The page that runs experiments: a form, the run that runs, its figures, and the runs that were kept."""

from __future__ import annotations

from collections.abc import Sequence

from wiretale.reports.html import offline_page


def console_page(
    folder: str,
    plans: Sequence[tuple[str, str]],
    links: Sequence[str],
    addresses: Sequence[Sequence[str]],
    networks: Sequence[str],
    sends_files: bool,
) -> str:
    """Returns the page: `plans` are names and titles, `links` profiles of a lab, `addresses` those of this host and of a lab,
    and `networks` those with published figures."""
    return offline_page.render(
        "console/console.html",
        {},
        entry="console/console.js",
        style=offline_page.part("experiment.css") + offline_page.part("console/console.css"),
        title="Experiments",
        heading="Run an experiment",
        folder=folder,
        plans=plans,
        links=links,
        addresses=addresses,
        networks=networks,
        sends_files=sends_files,
        served=True,
    )
