# SPDX-License-Identifier: Apache-2.0
"""The answers of all captures at hand as a table to read: file, cause, certainty, sentence.

python .ci/answers.py writes tests/causes/answers.tsv for sample_pcaps/, and answers_shared.tsv there for the captures beside
the checkout, if they are there. Captures in which nothing stands out, and those of other tools' tests that have nothing to judge,
are last, one line for each sentence with their number.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import wiretale
from wiretale.analyzer.errors import WiretaleError

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared"
TABLES = ROOT / "tests" / "causes"
SUFFIXES = (".pcap", ".pcapng", ".pcap.gz", ".pcapng.gz", ".cap")
HEAD = "file\tcause\tcertainty\tsentence"
UNJUDGED = ("not-decoded", "one-direction", "(headers-cut)", "(malformed)", "(datagram-incomplete)", "wlan-refused")
NUMBERS = re.compile(r"\d[\d,.]*(?: [µnm]?s\b| [kMG]?B\b)?")


def captures(folder: Path) -> list[Path]:
    """Returns the captures below a folder in the order of their names."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name.endswith(SUFFIXES))


def answer_row(path: Path, folder: Path) -> tuple[str, str, str, str]:
    """Returns file, cause, certainty and sentence of a capture; of one that cannot be read, the error."""
    name = path.relative_to(folder).as_posix()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", wiretale.DamagedInputWarning)
        try:
            trace = wiretale.analyze(path)
        except WiretaleError as error:
            return name, "error", "", str(error).replace(f"{path}: ", "")
    answer = trace.answer
    codes = {row["finding"]: row["code"] for row in trace.findings}
    cause = answer.cause or (f"({codes[answer.findings[0]]})" if answer.findings else "")
    return name, cause, answer.certainty or "", answer.sentence.replace(f"{folder}/", "").replace("\t", " ")


def table(folder: Path, paths: Iterable[Path]) -> str:
    """Returns the table of the captures of a folder."""
    rows, plain = [], Counter[tuple[str, str]]()
    for path in paths:
        name, cause, certainty, sentence = answer_row(path, folder)
        if cause and not (cause in UNJUDGED and name.startswith("captures/")):
            rows.append("\t".join((name, cause, certainty, sentence)))
        else:
            plain[cause, NUMBERS.sub("#", sentence)] += 1
    lines = [f"({count} captures)\t{cause}\t\t{sentence}" for (cause, sentence), count in sorted(plain.items())]
    return "\n".join([HEAD, *rows, *lines, ""])


def tables() -> dict[str, str]:
    """Returns the tables by file name, as far as their captures are there."""
    made = {"answers.tsv": table(ROOT / "sample_pcaps", captures(ROOT / "sample_pcaps"))}
    if SHARED.is_dir():
        paths = [path for name in ("labelled", "captures") for path in captures(SHARED / name)]
        made["answers_shared.tsv"] = table(SHARED, paths)
    return made


if __name__ == "__main__":
    for file_name, text in tables().items():
        (TABLES / file_name).write_text(text, "utf-8")
    sys.exit(0)
