# SPDX-License-Identifier: Apache-2.0
"""The published studies, run again in labs: `make studies`."""
