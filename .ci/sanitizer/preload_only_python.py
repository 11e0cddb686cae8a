# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin of the sanitizer run: only Python's own children load it, never tshark or Chromium."""

import os
import subprocess
from pathlib import Path
from typing import Any

PRELOADED = ("python", "pytest", "wiretale")


def _without_preload(environment: Any) -> dict[str, str]:
    variables = dict(os.environ if environment is None else environment)
    variables.pop("LD_PRELOAD", None)
    return variables


class _Popen(subprocess.Popen[Any]):
    def __init__(self, args: Any, *more: Any, **named: Any) -> None:
        program = Path(args.split()[0] if isinstance(args, str) else os.fspath(args[0])).name
        if not program.startswith(PRELOADED):
            named["env"] = _without_preload(named.get("env"))
        super().__init__(args, *more, **named)


subprocess.Popen = _Popen  # type: ignore[misc]  # replaced for all code in this process
