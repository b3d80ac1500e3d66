"""Running a gateway: one process or several over one socket, with a limit on how long the head of a request may take."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import uvicorn
from uvicorn.supervisors import Multiprocess

from maymust.errors import RunError
from maymust.gateway.metrics import SHARED
from maymust.gateway.options import Options
from maymust.gateway.protocol import PatientProtocol

GRACE = 30
"""So many seconds a request under way has to come to its end when the gateway is told to stop."""

_YOUNG = 20_000
"""So many values are made before the collector looks at them."""

MakeApp = Callable[[Options], Any]


def bind(options: Options) -> socket.socket:
    """The socket to listen on. Raises RunError when it cannot be had."""
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    # Named, so that asyncio sends without delay on what it accepts: the end of a stream would else wait 40 ms for an acknowledgement.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((options.host, options.port))
        made.listen(2048)
        made.set_inheritable(True)
    except OSError as error:
        made.close()
        raise RunError(f"{options.host}:{options.port} cannot be listened on: {error.strerror or error}") from error
    return made


def serve(options: Options, make_app: MakeApp, *, ready: Callable[[str], None], log_level: int = logging.INFO) -> None:
    """Serve until SIGINT or SIGTERM; requests under way come to their end first.

    make_app   makes the application of one worker; for several, it has to be a function that can be found by its name
    ready      told the base URL when requests are accepted

    Raises RunError when the address cannot be listened on.
    """
    with bind(options) as listening, _quiet_signals():
        host, port = listening.getsockname()[:2]
        url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        bound = replace(options, port=port)
        if options.workers == 1:
            config = _config(bound, partial(_app, make_app, bound, log_level))
            server = uvicorn.Server(config)
            ready(url)
            server.run(sockets=[listening])
        else:
            with _shared_counts():
                config = _config(bound, partial(_app, make_app, bound, log_level))
                ready(url)
                Multiprocess(config, sockets=[listening]).run()


def _app(make_app: MakeApp, options: Options, log_level: int) -> Any:
    _log_to_stderr(log_level)
    app = make_app(options)
    settle()
    return app


def settle() -> None:
    """Keep the collector from looking at what stays as long as the process, and from looking often: a request makes no cycles of any size,
    but thousands of values that live until its reply is there.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG)


def _log_to_stderr(level: int) -> None:
    log = logging.getLogger("maymust")
    if not log.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
        log.addHandler(handler)
    log.setLevel(level)


def _config(options: Options, factory: Callable[[], Any]) -> uvicorn.Config:
    return uvicorn.Config(
        factory,
        factory=True,
        workers=options.workers,
        # A function will do where uvicorn wants a class: it is only called.
        http=partial(_protocol, options.header_timeout, options.write_timeout),  # type: ignore[arg-type]
        ws="none",
        lifespan="on",
        # The line of an access log holds the query, and that may hold a key.
        access_log=False,
        log_level="warning",
        server_header=False,
        date_header=False,
        proxy_headers=False,
        limit_concurrency=options.max_requests * 4,
        timeout_graceful_shutdown=GRACE,
    )


def _protocol(seconds: float, write_seconds: float, *given: Any, **more: Any) -> PatientProtocol:
    made = PatientProtocol(*given, **more)
    made.seconds, made.write_seconds = seconds, write_seconds
    return made


@contextlib.contextmanager
def _quiet_signals() -> Iterator[None]:
    """Stopping is no failure: uvicorn raises the signal again once it has stopped, and it ends here."""
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _shared_counts() -> Iterator[None]:
    """A folder in which the workers keep their counts together."""
    folder = tempfile.mkdtemp(prefix="maymust-gateway-")
    os.environ[SHARED] = folder
    try:
        yield
    finally:
        del os.environ[SHARED]
        shutil.rmtree(folder, ignore_errors=True)
