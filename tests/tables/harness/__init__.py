"""Runs the rows of the run tables (`loop`, `exposure`, `middleware`, `approval`) through the public API.

rows.py        what a row may say, and a fault when it says anything else
bodies.py      scripted tools and the record that their bodies keep
policies.py    requirements, handlers and middleware of a row
peers.py       the scripted model
runner.py      one row, run: an `Observed` for each of its runs
errors.py      errors that a row expects
compare.py     what the row expects, key by key
invariants.py  what is true of every row
show.py        the record in words, for a failure
"""
