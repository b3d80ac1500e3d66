"""The same policy inside other people's agents: one file per framework, over a gate per run.

Each adapter is loaded with its framework only: `from maymust.adapters.langchain import PolicyMiddleware`.
"""
