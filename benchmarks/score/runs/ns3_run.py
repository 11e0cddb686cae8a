# SPDX-License-Identifier: Apache-2.0
"""Carries out runs in ns-3, another TCP implementation: ns3_run.py < ORDERS, each line an order as JSON.

A process of its own, because ns-3 is an optional extra (`pip install '.[ns3]'`), and its bindings take seconds to load. It prints
the folder of each run that is complete. The fields of an order are those of `score::Order` in ns3_path.cc."""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

PATH = Path(__file__).with_name("ns3_path.cc")


def fill_in(target: Any, values: dict[str, Any]) -> None:
    """Sets the fields of a structure of C++."""
    for name, value in values.items():
        if not isinstance(value, list):
            setattr(target, name, value)
        elif value and isinstance(value[0], dict):
            for index, item in enumerate(value):
                fill_in(getattr(target, name)[index], item)
        else:
            for item in value:
                getattr(target, name).push_back(tuple(item))


def main() -> None:
    ns = import_module("ns").ns
    ns.cppyy.cppdef(PATH.read_text())
    score = ns.cppyy.gbl.score
    for line in sys.stdin:
        order = json.loads(line)
        made = score.Order()
        fill_in(made, order)
        child = os.fork()  # because ns-3 aborts if one of its assertions fails
        if not child:
            score.Simulate(made)
            os._exit(0)
        if os.waitpid(child, 0)[1] == 0:
            print(order["folder"], flush=True)


if __name__ == "__main__":
    main()
