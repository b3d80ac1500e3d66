"""The page: a run as a matrix of permits, why each verdict is what it is, the policy's automaton, and a playground.

`maymust view` writes it as one file, `maymust serve` serves it and needs the extra `web`.
"""
