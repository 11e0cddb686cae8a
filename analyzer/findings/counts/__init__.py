# SPDX-License-Identifier: Apache-2.0
"""Rules about counts of the directions table."""
