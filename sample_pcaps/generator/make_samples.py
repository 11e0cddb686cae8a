# SPDX-License-Identifier: Apache-2.0
"""Makes the sample captures in the folder above this one, and their truth; every run must give the same bytes.

python sample_pcaps/generator/make_samples.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

import block_cases
import capture_cases
import conversation_cases
import fragment_cases
import tcp_cases

CASES = (block_cases, capture_cases, conversation_cases, fragment_cases, tcp_cases)


def make_all(folder: Path) -> None:
    """Calls every function make_NAME of the cases, which writes NAME.pcap or NAME.pcapng."""
    for module in CASES:
        for name, make in vars(module).items():
            if name.startswith("make_"):
                make(folder / name.removeprefix("make_"))


if __name__ == "__main__":
    make_all(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1])
