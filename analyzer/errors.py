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
    """The base class; the text must be one line.

    >>> import wiretale
    >>> try:
    ...     wiretale.analyze("none.pcap")
    ... except wiretale.WiretaleError as error:
    ...     print(error.exit_code, error)
    4 none.pcap: No such file or directory
    """

    exit_code = 5  # a program failed; 1 is for thresholds of the user (--fail-if)


class UsageError(WiretaleError, ValueError):
    """Invalid option, filter or time.

    >>> import wiretale
    >>> try:
    ...     wiretale.analyze("sample_pcaps/tcp_losses.pcap", filter="tcp prot 80")
    ... except wiretale.UsageError as error:
    ...     print(error)
    filter 'tcp prot 80': can't parse filter expression: syntax error
    """

    exit_code = 2


class InputError(WiretaleError, OSError):
    """A capture cannot be opened, has an unknown format, or needs more memory than available.

    >>> import wiretale
    >>> try:
    ...     wiretale.analyze("none.pcap")
    ... except wiretale.InputError as error:
    ...     print(error)
    none.pcap: No such file or directory
    """

    exit_code = 4


class OutputError(WiretaleError, OSError):
    """A file or folder cannot be written; an existing file is unchanged.

    >>> import wiretale
    >>> try:
    ...     wiretale.analyze("sample_pcaps/tcp_losses.pcap").report("no/folder.html")
    ... except wiretale.OutputError as error:
    ...     print(error)
    no/folder.html: cannot write: No such file or directory
    """

    exit_code = 4


class MissingToolError(WiretaleError):
    """A program, library or permission is missing; the text includes the command that installs it.

    >>> import wiretale
    >>> from unittest import mock
    >>> with mock.patch.dict("sys.modules", polars=None):
    ...     try:
    ...         wiretale.analyze("sample_pcaps/tcp_losses.pcap").flows.to_polars()
    ...     except wiretale.MissingToolError as error:
    ...         print(str(error).partition(":")[0])
    polars is not installed
    """

    exit_code = 5


class SkippedFileWarning(UserWarning):
    """A file was skipped: one of several that is empty, unreadable or no capture, or one of a folder that has the name or first
    bytes of a capture, but is damaged or of another program.

    >>> import warnings, wiretale
    >>> from pathlib import Path
    >>> _ = Path("empty.pcap").write_bytes(b"")
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = wiretale.analyze("sender.pcap", "empty.pcap")
    >>> print(caught[0].message)
    skipped empty.pcap: empty (0 bytes)
    """


class SkippedFolderWarning(SkippedFileWarning):
    """A folder in a folder of captures was skipped, because it is a split or a store, perhaps of the same captures.

    >>> import shutil, warnings, wiretale
    >>> _ = wiretale.Store("captures/archive").add("sender.pcap"), shutil.copy("receiver.pcap", "captures")
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = wiretale.analyze("captures")
    >>> print(caught[0].message)
    skipped captures/archive: is a store
    """


class DamagedInputWarning(UserWarning):
    """A capture is damaged or truncated: the results cover the part before the damage.

    >>> import warnings, wiretale
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = wiretale.analyze("sample_pcaps/damaged.pcap")
    >>> str(caught[0].message).partition(": captured")[0]
    'sample_pcaps/damaged.pcap: at byte 6220'
    """
