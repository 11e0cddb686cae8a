# SPDX-License-Identifier: Apache-2.0
"""Tests that are planned, run and kept: experiments with wiretale-traffic."""
