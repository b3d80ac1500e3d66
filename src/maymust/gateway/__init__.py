"""The pass in front of any client: an HTTP gateway that rewrites requests, and checks what comes back (extra `gateway`)."""

from maymust.errors import missing

try:
    import httpx  # noqa: F401
    import prometheus_client  # noqa: F401
    import starlette  # noqa: F401
    import uvicorn  # noqa: F401
except ImportError as _fault:
    raise missing("maymust.gateway needs starlette, uvicorn, httpx and prometheus-client", "gateway", _fault) from _fault
