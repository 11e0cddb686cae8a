# SPDX-License-Identifier: Apache-2.0
"""The link of a lab: wiretale-link between the interfaces of the tracer, and its truth log."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from wiretale.analyzer.errors import InputError, OutputError, UsageError, WiretaleError
from wiretale.traffic.lab.hosts import LINK_ADDRESSES
from wiretale.traffic.lab.process import last_line, start_program
from wiretale.traffic.lab.profile import Profile
from wiretale.traffic.lab.state import Lab
from wiretale.traffic.program import find_program

TRUTH = "truth.bin"
# Columns of the truth by type.
TRUTH_COLUMNS = {
    "UTINYINT": "direction copies ip_version protocol tcp_flags",
    "USMALLINT": "corrupted_bits source_port destination_port block_stream",
    "UINTEGER": "queue_packets queue_bytes ip_bytes ip_id fragment_offset payload_bytes tcp_sequence tcp_ack block_run",
    "UBIGINT": "index block_sequence",
    "BIGINT": "in_ns out_ns due_ns",
    "BOOLEAN": "copied reordered",
    "VARCHAR": "fate marked source destination",
}


def make_folder(folder: Path) -> None:
    """Makes the directory of a run."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot create the output directory: {error.strerror}") from None


def link_command(profile: Profile, truth: Path) -> list[str]:
    """Returns the command that runs the link of a profile on the tracer."""
    addresses = [word for address in LINK_ADDRESSES for word in ("--address", address)]
    options = ["--forward", profile.forward, "--reverse", profile.reverse, "--seed", str(profile.seed)]
    return [find_program("wiretale-link"), "left", "right", *options, *addresses, "--truth", str(truth), "--json"]


def start_link(lab: Lab, profile: Profile, folder: Path) -> subprocess.Popen[bytes]:
    """Starts the link and waits until it forwards packets."""
    command = lab.inside("tracer", *link_command(profile, folder / TRUTH))
    try:
        return start_program(command, folder, "link", "linking ")
    except (UsageError, InputError) as error:
        raise type(error)(f"profile {profile.name}: {error}") from None


def check_ended_well(folder: Path) -> None:
    """Raises OutputError if the last message of the link is an error, such as a full disk."""
    message = last_line((folder / "link.log").read_text("utf-8", "replace"))
    if message.startswith("wiretale-link: "):
        raise OutputError(message.removeprefix("wiretale-link: "))


def link_summary(folder: Path) -> dict[str, Any]:
    """Returns the summary that the link wrote at its end."""
    try:
        summary = json.loads((folder / "link.out").read_text())
    except ValueError:
        raise WiretaleError(f"the link failed: {last_line((folder / 'link.log').read_text())}") from None
    if not isinstance(summary, dict):
        raise WiretaleError(f"{folder / 'link.out'}: expected one JSON object")
    return summary


def summary_if_any(folder: Path) -> dict[str, Any] | None:
    """Returns the summary of a link that was ended; None if it wrote none."""
    try:
        return link_summary(folder)
    except (OSError, WiretaleError):
        return None


def write_truth(folder: Path, target: Path) -> Path:
    """Writes the truth as Parquet, one row per packet (docs/lab.md)."""
    import duckdb

    from wiretale.analyzer.query import SETTINGS
    from wiretale.reports.export.destination import output_folder
    from wiretale.reports.export.parquet import FORMATS

    with output_folder(target.parent) as partial:
        text = partial / "truth.csv"
        with text.open("wb") as out:
            command = [find_program("wiretale-link"), "--print-truth", str(folder / TRUTH)]
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise WiretaleError(last_line(done.stderr))
        types = {name: kind for kind, names in TRUTH_COLUMNS.items() for name in names.split()}
        try:
            with duckdb.connect(config=dict(SETTINGS)) as connection:
                rows = connection.read_csv(str(text), header=True, dtype=types)
                rows.create_view("truth")
                path = str(partial / target.name).replace("'", "''")
                order = "coalesce(in_ns, out_ns), direction, index"
                connection.execute(f"COPY (FROM truth ORDER BY {order}) TO '{path}' ({FORMATS['parquet']})")
        except duckdb.Error as error:
            raise OutputError(f"{target}: cannot write the truth: {str(error).splitlines()[0]}") from None
        text.unlink()
    return target
