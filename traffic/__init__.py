# SPDX-License-Identifier: Apache-2.0
"""Generated traffic: the C programs, experiments and the lab."""
