"""Policies as files (`*.policy.yaml`), and cases that say what such a policy should allow (`*.policy-test.yaml`).

Reading one needs the extra `yaml` (or `cli`). Every message has a file, a line and a column.
"""

from maymust.policyfile.load import PolicyFile, load_policy, parse_policy, read_policy_file
from maymust.policyfile.problem import PolicyFileError, Position, Problem
from maymust.policyfile.write import dump_policy

__all__ = ["PolicyFile", "PolicyFileError", "Position", "Problem", "dump_policy", "load_policy", "parse_policy", "read_policy_file"]
