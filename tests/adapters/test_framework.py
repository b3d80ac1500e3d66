"""An adapter whose framework is not there says what to install; the frameworks themselves are not needed to see it."""

import subprocess
import sys

import pytest

WITHOUT = """
import sys
sys.modules[{framework!r}] = None
try:
    import maymust.adapters.{adapter}
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("adapter", "framework", "extra"),
    [
        ("agent_framework", "agent_framework", "agent-framework"),
        ("beeai", "beeai_framework", "beeai"),
        ("claude_agent_sdk", "claude_agent_sdk", "claude-agent-sdk"),
        ("google_adk", "google.adk", "google-adk"),
        ("langchain", "langchain", "langchain"),
        ("openai_agents", "agents", "openai-agents"),
        ("pydantic_ai", "pydantic_ai", "pydantic-ai"),
        ("strands", "strands", "strands"),
    ],
)
def test_a_missing_framework_is_named_with_the_line_that_installs_it(adapter: str, framework: str, extra: str) -> None:
    script = WITHOUT.format(adapter=adapter, framework=framework)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("this adapter needs ")
    assert f": pip install 'maymust[{extra}]' (" in done.stdout
