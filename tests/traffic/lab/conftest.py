# SPDX-License-Identifier: Apache-2.0
"""Labs of tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from lab_bench import Sent, send_through


@pytest.fixture(scope="module", autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Labs are written down where no other test looks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WIRETALE_STATE", str(tmp_path_factory.mktemp("labs")))
        yield


@pytest.fixture
def send(tmp_path: Path) -> Callable[..., Sent]:
    """Sends blocks through a link with those settings."""
    return partial(send_through, tmp_path)
