# SPDX-License-Identifier: Apache-2.0
"""What can go wrong, as the caller sees it.

    WiretaleError
    ├── UsageError        an option, a filter or a time that cannot be used      exit code 2
    ├── InputError        a capture that cannot be read at all                   exit code 4
    ├── OutputError       a file that cannot be written                          exit code 4
    └── MissingToolError  a program, a library or a permission that is missing   exit code 5

A capture that is damaged after its beginning is no error: what was read is analyzed, and the damage is a finding.
"""

from __future__ import annotations


class WiretaleError(Exception):
    """Anything that ends an analysis; its text is one line for a person."""

    exit_code = 5  # a program that did not do what it was started for; 1 is for thresholds of the user's (--fail-if)


class UsageError(WiretaleError):
    """An option, a filter or a time that cannot be used."""

    exit_code = 2


class InputError(WiretaleError):
    """A capture that cannot be opened or is none, or is too large for this machine's memory."""

    exit_code = 4


class OutputError(WiretaleError):
    """A file or a folder that cannot be written; what was there before is still there."""

    exit_code = 4


class MissingToolError(WiretaleError):
    """A program, a library or a permission that is missing; the text says which command mends it."""

    exit_code = 5


class SkippedFileWarning(UserWarning):
    """Files of a folder that were not read because they are in a format of other programs."""
