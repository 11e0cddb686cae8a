# SPDX-License-Identifier: Apache-2.0
"""Limits of TCP transfers, scored against the chronometers of the sender's kernel."""
