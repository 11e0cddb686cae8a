# SPDX-License-Identifier: Apache-2.0
"""The version; setup.cfg reads it from this file, and `make release` compares it with the tag."""

__version__ = "0.2.0"
