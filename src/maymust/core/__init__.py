"""The pure core: values, the fold and the policy. Standard library only, no async, no I/O."""
