"""Runs on any number of hosts: DBOS on Postgres (or on one SQLite file) keeps them, queues them, and recovers them."""
