# SPDX-License-Identifier: Apache-2.0
"""Traffic that is made on purpose: the C programs, experiments and the lab."""
