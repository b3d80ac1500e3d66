"""What an adapter says where its framework is not installed, or in a version that it does not know."""


def missing(framework: str, extra: str, fault: ImportError) -> ImportError:
    """The error to raise, of the same kind, with the line that installs the version an adapter is held against."""
    text = f"this adapter needs {framework}: pip install 'maymust[{extra}]' ({fault})"
    return type(fault)(text, name=fault.name, path=fault.path)
