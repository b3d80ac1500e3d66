"""Policies and runs as something to look at."""
