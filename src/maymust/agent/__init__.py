"""The loop: a reducer, its driver, and what surrounds a call."""
