# SPDX-License-Identifier: Apache-2.0
"""The lab's link: wiretale-link between the tracer's interfaces, and its truth log."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

from wiretale.analyzer.errors import InputError, MissingToolError, OutputError, UsageError, WiretaleError
from wiretale.traffic.lab.hosts import LINK_ADDRESSES
from wiretale.traffic.lab.profile import Profile
from wiretale.traffic.lab.program import last_line
from wiretale.traffic.lab.state import Lab
from wiretale.traffic.program import find_program

READY_SECONDS = 10
END_SECONDS = 30
ERRORS = {error.exit_code: error for error in (UsageError, InputError, MissingToolError)}
TRUTH = "truth.bin"


def make_folder(folder: Path) -> None:
    """Creates a folder for a run."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot create the output folder: {error.strerror}") from None


def link_command(profile: Profile, truth: Path) -> list[str]:
    """Returns the command that runs a profile's link on the tracer."""
    addresses = [word for address in LINK_ADDRESSES for word in ("--address", address)]
    options = ["--forward", profile.forward, "--reverse", profile.reverse, "--seed", str(profile.seed)]
    return [find_program("wiretale-link"), "left", "right", *options, *addresses, "--truth", str(truth), "--json"]


def wait_until(process: subprocess.Popen[bytes], messages: Path, word: str, what: str) -> None:
    """Waits until the process has written that word; raises WiretaleError with its last line if it ends first."""
    deadline = time.monotonic() + READY_SECONDS
    while word not in messages.read_text("utf-8", "replace"):
        if process.poll() is not None:
            said = last_line(messages.read_text("utf-8", "replace")).removeprefix("wiretale-link: ")
            raise ERRORS.get(process.returncode, WiretaleError)(f"{what}: {said}")
        if time.monotonic() > deadline:
            process.kill()
            raise WiretaleError(f"{what} was not ready after {READY_SECONDS} s")
        time.sleep(0.01)


def start_program(command: list[str], folder: Path, name: str, word: str) -> subprocess.Popen[bytes]:
    """Starts a program with its output in NAME.out and NAME.log, and waits until the log contains that word."""
    try:
        with (folder / f"{name}.out").open("wb") as out, (folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=log, start_new_session=True
            )
    except OSError as error:
        raise OutputError(f"{folder}: cannot write: {error.strerror}") from None
    wait_until(process, folder / f"{name}.log", word, name)
    return process


def start_link(lab: Lab, profile: Profile, folder: Path) -> subprocess.Popen[bytes]:
    """Starts the link and waits until it forwards packets."""
    command = lab.inside("tracer", *link_command(profile, folder / TRUTH))
    try:
        return start_program(command, folder, "link", "linking ")
    except (UsageError, InputError) as error:
        raise type(error)(f"profile {profile.name}: {error}") from None


def end_program(process: subprocess.Popen[bytes]) -> None:
    """Terminates it and waits; kills it if it does not end."""
    process.terminate()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def check_ended_well(folder: Path) -> None:
    """Raises OutputError if the link reported an error at its end, such as a full disk."""
    said = last_line((folder / "link.log").read_text("utf-8", "replace"))
    if said.startswith("wiretale-link: "):
        raise OutputError(said.removeprefix("wiretale-link: "))


def link_summary(folder: Path) -> dict[str, Any]:
    """Returns the JSON object that the link printed at its end."""
    try:
        said = json.loads((folder / "link.out").read_text())
    except ValueError:
        raise WiretaleError(f"the link did not end well: {last_line((folder / 'link.log').read_text())}") from None
    if not isinstance(said, dict):
        raise WiretaleError(f"{folder / 'link.out'}: expected one JSON object")
    return said


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
        try:
            with duckdb.connect(config=dict(SETTINGS)) as connection:
                rows = connection.read_csv(str(text), header=True, dtype=TRUTH_TYPES)
                rows.create_view("truth")
                path = str(partial / target.name).replace("'", "''")
                order = "coalesce(in_ns, out_ns), direction, index"
                connection.execute(f"COPY (FROM truth ORDER BY {order}) TO '{path}' ({FORMATS['parquet']})")
        except duckdb.Error as error:
            raise OutputError(f"{target}: cannot write the truth: {str(error).splitlines()[0]}") from None
        text.unlink()
    return target


TRUTH_TYPES: dict[str, Any] = {
    "direction": "UTINYINT",
    "index": "UBIGINT",
    "fate": "VARCHAR",
    "in_ns": "BIGINT",
    "out_ns": "BIGINT",
    "due_ns": "BIGINT",
    "queue_packets": "UINTEGER",
    "queue_bytes": "UINTEGER",
    "copies": "UTINYINT",
    "copied": "BOOLEAN",
    "reordered": "BOOLEAN",
    "corrupted_bits": "USMALLINT",
    "ip_bytes": "UINTEGER",
    "ip_version": "UTINYINT",
    "protocol": "UTINYINT",
    "source": "VARCHAR",
    "source_port": "USMALLINT",
    "destination": "VARCHAR",
    "destination_port": "USMALLINT",
    "ip_id": "UINTEGER",
    "fragment_offset": "UINTEGER",
    "payload_bytes": "UINTEGER",
    "tcp_sequence": "UINTEGER",
    "tcp_ack": "UINTEGER",
    "tcp_flags": "UTINYINT",
    "block_run": "UINTEGER",
    "block_stream": "USMALLINT",
    "block_sequence": "UBIGINT",
}
