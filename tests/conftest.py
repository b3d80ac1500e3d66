"""What all tests share."""

import os

# Tests must not depend on what the machine of whoever runs them has set.
for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "MAYMUST_LOCAL_MODEL"):
    os.environ.pop(name, None)
