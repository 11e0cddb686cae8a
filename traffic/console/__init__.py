# SPDX-License-Identifier: Apache-2.0
"""`wiretale experiment serve`: runs that a page starts, stops and compares."""
