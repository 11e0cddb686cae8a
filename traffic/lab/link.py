# SPDX-License-Identifier: Apache-2.0
"""The links of a lab: wiretale-link between the interfaces of a tracer, with its truth log.

Files of the first link are link.log and truth.bin; the others have the name of their host or router, as in link-NAME.log.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from wiretale.analyzer.errors import InputError, OutputError, UsageError, WiretaleError
from wiretale.traffic.lab.hosts import LINK_ADDRESSES
from wiretale.traffic.lab.process import end_program, last_line, start_program
from wiretale.traffic.lab.profile import Profile
from wiretale.traffic.lab.state import Lab
from wiretale.traffic.lab.topology.description import Hop
from wiretale.traffic.program import find_program

SEEDS = 2**63
TRUTH_MAGIC = b"WTTRUTH1"  # traffic/link/packet/truth_record.h
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


def part(tracer: str) -> str:
    """Returns what the names of files have of a link, such as -isp; nothing for the first."""
    return tracer.removeprefix("tracer").replace(".", "-")


def link_command(forward: str, reverse: str, seed: int, truth: Path) -> list[str]:
    """Returns the command that runs a link on its tracer."""
    addresses = [word for address in LINK_ADDRESSES for word in ("--address", address)]
    options = ["--forward", forward, "--reverse", reverse, "--seed", str(seed)]
    return [find_program("wiretale-link"), "left", "right", *options, *addresses, "--truth", str(truth), "--json"]


def is_truth_log(path: Path) -> bool:
    """Returns whether a file is a truth log of wiretale-link."""
    if not path.is_file():
        return False
    with path.open("rb") as log:
        return log.read(len(TRUTH_MAGIC)) == TRUTH_MAGIC


def remove_earlier_links(folder: Path) -> None:
    """Removes the files of further links that an earlier lab left in a directory; other files stay, whatever their names."""
    try:
        for log in filter(is_truth_log, folder.glob("truth-*.bin")):
            link = log.stem.removeprefix("truth")
            for name in (f"truth{link}.parquet", f"link{link}.out", f"link{link}.log", log.name):
                (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"{error.filename}: cannot remove: {error.strerror}") from None


def start_links(lab: Lab, profile: Profile, folder: Path) -> list[subprocess.Popen[bytes]]:
    """Starts all links and waits until they forward packets. Each has a seed of its own, so that their losses differ."""
    remove_earlier_links(folder)
    started: list[subprocess.Popen[bytes]] = []
    links: list[Profile | Hop] = [profile, *profile.topology.hops, *profile.topology.hosts]
    try:
        for number, (tracer, link) in enumerate(zip(lab.tracers, links, strict=True)):
            log = folder / f"truth{part(tracer)}.bin"
            command = link_command(link.forward, link.reverse, (profile.seed + number) % SEEDS, log)
            started.append(start_program(lab.inside(tracer, *command), folder, f"link{part(tracer)}", "linking "))
    except BaseException as error:
        for process in started:
            end_program(process)
        if isinstance(error, (UsageError, InputError)):
            raise type(error)(f"profile {profile.name}: {error}") from None
        raise
    return started


def check_ended_well(lab: Lab, folder: Path) -> None:
    """Raises OutputError if the last message of a link is an error, such as a full disk."""
    for tracer in lab.tracers:
        message = last_line((folder / f"link{part(tracer)}.log").read_text("utf-8", "replace"))
        if message.startswith("wiretale-link: "):
            raise OutputError(message.removeprefix("wiretale-link: "))


def link_summary(folder: Path, tracer: str = "tracer") -> dict[str, Any]:
    """Returns the summary that a link wrote at its end."""
    name = f"link{part(tracer)}"
    try:
        summary = json.loads((folder / f"{name}.out").read_text())
    except ValueError:
        raise WiretaleError(f"the link failed: {last_line((folder / f'{name}.log').read_text())}") from None
    if not isinstance(summary, dict):
        raise WiretaleError(f"{folder / f'{name}.out'}: expected one JSON object")
    return summary


def worst(fidelities: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the fidelity of several links: the largest errors, all overruns, and whether each was valid that had packets."""
    verdicts = [fidelity["valid"] for fidelity in fidelities if fidelity["valid"] is not None]
    errors = {
        name: max((fidelity[name] for fidelity in fidelities if fidelity[name] is not None), default=None)
        for name in ("error_ns_p50", "error_ns_p99", "error_ns_max")
    }
    sums = {name: sum(fidelity[name] for fidelity in fidelities) for name in ("overruns", "restamped")}
    real_time = all(fidelity["real_time"] for fidelity in fidelities)
    return {**fidelities[0], **errors, **sums, "valid": all(verdicts) if verdicts else None, "real_time": real_time}


def lab_summary(lab: Lab, folder: Path) -> dict[str, Any]:
    """Returns the summary of the first link, with the fidelity of all links; `links` has the summaries of the others."""
    first, *further = [link_summary(folder, tracer) for tracer in lab.tracers]
    links = {tracer.partition(".")[2]: summary for tracer, summary in zip(lab.tracers[1:], further, strict=True)}
    fidelity = worst([first["fidelity"], *(summary["fidelity"] for summary in further)])
    return {**first, "fidelity": fidelity, "links": links}


def summary_if_any(lab: Lab) -> dict[str, Any] | None:
    """Returns the summary of a lab that was ended; None if a link wrote none."""
    try:
        return lab_summary(lab, Path(lab.folder))
    except (OSError, WiretaleError):
        return None


def has_truths(lab: Lab, folder: Path) -> bool:
    """Returns whether each link made its truth log."""
    return all((folder / f"truth{part(tracer)}.bin").is_file() for tracer in lab.tracers)


def write_truths(lab: Lab, folder: Path) -> Path:
    """Writes the truth of each link: truth.parquet, which is returned, and truth-NAME.parquet of the others."""
    first, *_ = [write_truth(folder, folder / f"truth{part(tracer)}.parquet") for tracer in lab.tracers]
    return first


def write_truth(folder: Path, target: Path) -> Path:
    """Writes the truth of one link as Parquet, one row per packet (docs/lab.md); its log in `folder` has the same name."""
    import duckdb

    from wiretale.analyzer.query import SETTINGS
    from wiretale.reports.export.destination import output_folder
    from wiretale.reports.export.parquet import FORMATS

    with output_folder(target.parent) as partial:
        text = partial / "truth.csv"
        with text.open("wb") as out:
            command = [find_program("wiretale-link"), "--print-truth", str(folder / f"{target.stem}.bin")]
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
