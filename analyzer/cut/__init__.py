# SPDX-License-Identifier: Apache-2.0
"""Cuts of captures: which packets, and their annotations."""
