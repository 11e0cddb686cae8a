# SPDX-License-Identifier: Apache-2.0
"""The errors of wiretale.
    WiretaleError
    ├── UsageError        invalid option, filter or time (ValueError)    exit code 2
    ├── InputError        a capture cannot be read at all (OSError)      exit code 4
    ├── OutputError       a file cannot be written (OSError)             exit code 4
    └── MissingToolError  missing program, library or permission         exit code 5

If a capture is damaged after its beginning, wiretale analyzes the part before the damage, reports a finding, and warns with
DamagedInputWarning. Code that catches OSError or ValueError of other calls must let a WiretaleError pass first.
"""

from __future__ import annotations


class WiretaleError(Exception):
    """The base class; the text must be one line."""

    exit_code = 5  # a program failed; 1 is for thresholds of the user (--fail-if)


class UsageError(WiretaleError, ValueError):
    """Invalid option, filter or time."""

    exit_code = 2


class InputError(WiretaleError, OSError):
    """A capture cannot be opened, has an unknown format, or needs more memory than available."""

    exit_code = 4


class OutputError(WiretaleError, OSError):
    """A file or folder cannot be written; an existing file is unchanged."""

    exit_code = 4


class MissingToolError(WiretaleError):
    """A program, library or permission is missing; the text includes the command that installs it."""

    exit_code = 5


class SkippedFileWarning(UserWarning):
    """A file was skipped: one of several that is empty or unreadable, or one of a folder that has the name or first bytes of a
    capture, but is damaged or of another program."""


class SkippedFolderWarning(SkippedFileWarning):
    """A folder in a folder of captures was skipped, because it is a split or a store, perhaps of the same captures."""


class DamagedInputWarning(UserWarning):
    """A capture is damaged or truncated: the results cover the part before the damage."""
