"""Runs on any number of hosts: DBOS on Postgres (or on one SQLite file) keeps them, queues them, and recovers them."""

from maymust.errors import missing

try:
    import dbos  # noqa: F401
    import sqlalchemy  # noqa: F401
except ImportError as _fault:
    raise missing("DbosStore needs DBOS", "dbos", _fault) from _fault
