# SPDX-License-Identifier: Apache-2.0
"""The version; setup.cfg reads it from this file."""

__version__ = "0.1.0"
