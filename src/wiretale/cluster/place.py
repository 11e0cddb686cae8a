# SPDX-License-Identifier: Apache-2.0
"""The folder that the steps of a run share: a directory that every worker sees, or an URL of an object store.

A file is published whole: in a directory by rename, in an object store by the end of its upload. So a file that is there is
complete, and a step whose files are there need not run again.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from wiretale.analyzer.capture_paths import is_url, public_url
from wiretale.analyzer.errors import OutputError, UsageError, WiretaleError
from wiretale.analyzer.files.remote import file_system, reason_of

STORES = ("s3", "gs", "gcs")  # whose uploads are whole or absent


class Place:
    """A folder for files by name, such as `000003/facts.json`. OutputError if it cannot be read or written."""

    def __init__(self, text: str) -> None:
        self.text = text.rstrip("/") if is_url(text) else os.path.abspath(text)
        self.is_url = is_url(text)
        self._files: Any = None
        if self.is_url:
            if urlsplit(text).scheme.lower() not in STORES:
                raise UsageError(f"{public_url(text)}: expected a directory, s3:// or gs://")
            # A listing is old as soon as a worker adds a file, and gcsfs would not fetch one that it lacks.
            self._files, self._root = file_system(self.text, use_listings_cache=False)

    def __str__(self) -> str:
        return public_url(self.text)

    def path(self, name: str) -> Path:
        """Returns the path of a file in a directory."""
        return Path(self.text, name)

    def _failed(self, name: str, error: BaseException) -> OutputError:
        reason = (error.strerror if isinstance(error, OSError) else None) or reason_of(error)
        return OutputError(f"{public_url(self.text)}/{name}: {reason}")

    def names(self, folder: str = "") -> dict[str, int]:
        """Returns the sizes of the files below a folder by name, without those that are not yet published."""
        sizes: dict[str, int] = {}
        try:
            if self.is_url:
                top = self._root.rstrip("/") + "/"
                for path, details in self._files.find(top + folder, detail=True).items():
                    sizes[path.removeprefix(top)] = details["size"]
            else:
                for below, folders, names in os.walk(self.path(folder)):
                    folders[:] = [name for name in folders if not name.startswith(".")]
                    for name in names:
                        with suppress(FileNotFoundError):  # another run renamed it
                            path = os.path.join(below, name)
                            sizes[os.path.relpath(path, self.text)] = os.stat(path).st_size
        except FileNotFoundError:
            return sizes
        except Exception as error:  # each file system has errors of its own
            raise self._failed(folder, error) from None
        return sizes

    def read(self, name: str) -> bytes | None:
        """Returns the content of a small file, or None if it does not exist."""
        try:
            if self.is_url:
                content: bytes = self._files.cat_file(f"{self._root}/{name}")
                return content
            return self.path(name).read_bytes()
        except FileNotFoundError:
            return None
        except Exception as error:
            raise self._failed(name, error) from None

    def write(self, name: str, content: bytes) -> None:
        """Publishes a small file."""
        try:
            if self.is_url:
                self._files.pipe_file(f"{self._root}/{name}", content)
            else:
                partial = self._partial(name)
                partial.write_bytes(content)
                os.replace(partial, self.path(name))
        except Exception as error:
            raise self._failed(name, error) from None

    def publish(self, folder: Path, name: str, last: str) -> None:
        """Moves a folder of files into this one, in place of an earlier one; to a URL file by file, `last` at the end."""
        try:
            if self.is_url:
                for file in sorted(folder.iterdir(), key=lambda file: file.name == last):
                    self.copy(file, f"{name}/{file.name}")
                return
            shutil.rmtree(self.path(name), ignore_errors=True)
            folder.rename(self.path(name))
        except OSError as error:
            raise self._failed(name, error) from None

    def copy(self, file: Path, name: str) -> None:
        """Publishes the content of a file at a URL."""
        try:
            self._files.put_file(str(file), f"{self._root}/{name}")
        except Exception as error:
            raise self._failed(name, error) from None

    def _partial(self, name: str) -> Path:
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.with_name(f".partial-{os.urandom(8).hex()}")

    def fetch(self, name: str, file: Path) -> None:
        """Copies a file, if it exists, from a URL."""
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._files.get_file(f"{self._root}/{name}", str(file))
        except FileNotFoundError:
            file.unlink(missing_ok=True)
        except Exception as error:
            raise self._failed(name, error) from None

    def remove(self, name: str = "") -> None:
        """Removes a file or folder, as far as permitted."""
        with suppress(WiretaleError, OSError):
            path = self.path(name)
            if not self.is_url:
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()
            elif self.names(name):
                self._files.rm(f"{self._root}/{name}".rstrip("/"), recursive=True)
