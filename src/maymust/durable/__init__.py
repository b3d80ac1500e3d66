"""Runs that outlive their process: stores, leases, questions that wait, and what is known of a run from outside."""
