# SPDX-License-Identifier: Apache-2.0
"""The reports of an experiment and of a lab."""
