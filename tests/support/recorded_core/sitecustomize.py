# SPDX-License-Identifier: Apache-2.0
"""On the PYTHONPATH of a program: writes the options that each call of the core gets to a file, one line of JSON each."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

from wiretale.analyzer import _core
from wiretale.analyzer.options import AnalysisOptions


def recorded(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the call with the options among its arguments noted."""

    def call_noted(*arguments: Any) -> Any:
        (options,) = (value for value in arguments if isinstance(value, AnalysisOptions))
        with open(os.environ["RECORDED_CORE"], "a") as file:
            file.write(json.dumps({"call": name, **options._asdict()}) + "\n")
        return call(*arguments)

    return call_noted


class Analysis:
    """Stands for the type of the core."""

    split = staticmethod(recorded("split", _core.Analysis.split))
    joined = staticmethod(_core.Analysis.joined)

    def __new__(cls, *arguments: Any) -> Any:
        return recorded("analysis", ANALYSIS)(*arguments)


ANALYSIS = _core.Analysis
if "RECORDED_CORE" in os.environ:
    _core.Analysis = Analysis  # type: ignore[assignment, misc]
