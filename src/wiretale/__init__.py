# SPDX-License-Identifier: Apache-2.0
"""Analyzes packet captures.

import wiretale

trace = wiretale.analyze("transfer.pcapng")
trace.flows                   # a table: prints itself, implements the Arrow PyCapsule interface
trace.query("from flows order by wire_bytes desc limit 5")
trace.report("transfer.html")
"""

from __future__ import annotations

from wiretale.version import __version__

TYPE_CHECKING = False  # importing typing would take 2 ms
if TYPE_CHECKING:
    from typing import Any

    from wiretale.analyzer.errors import (
        InputError,
        MissingToolError,
        OutputError,
        SkippedFileWarning,
        UsageError,
        WiretaleError,
    )
    from wiretale.analyzer.table import Table
    from wiretale.analyzer.trace import Trace, analyze

__all__ = [
    "InputError",
    "MissingToolError",
    "OutputError",
    "SkippedFileWarning",
    "Table",
    "Trace",
    "UsageError",
    "WiretaleError",
    "__version__",
    "analyze",
]

HOMES = {"Table": "table", "Trace": "trace", "analyze": "trace"}  # in wiretale.analyzer; the others are in errors


def __getattr__(name: str) -> Any:
    """Imports a public name at its first use, because `wiretale --version` needs no name."""
    if name not in __all__:
        raise AttributeError(f"module 'wiretale' has no attribute {name!r}")
    from importlib import import_module

    try:
        return getattr(import_module(f"wiretale.analyzer.{HOMES.get(name, 'errors')}"), name)
    except ImportError as error:
        from wiretale.analyzer.errors import MissingToolError
        from wiretale.installation import explain_import

        raise MissingToolError(explain_import(error)) from error


def __dir__() -> list[str]:
    return sorted(__all__)
