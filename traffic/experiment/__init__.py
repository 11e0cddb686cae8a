# SPDX-License-Identifier: Apache-2.0
"""`wiretale experiment`: plans of tests, their runs and results."""
