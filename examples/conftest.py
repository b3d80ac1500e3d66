"""What pytest leaves alone here: the project that the coding agent works on has tests of its own."""

collect_ignore = ["coding_agent/project"]
