"""The built-in requirements, and the way to write one's own."""
