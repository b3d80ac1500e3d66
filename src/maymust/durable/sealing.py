"""Secrets among the arguments of calls that have no result yet: stored encrypted, or not at all."""

from __future__ import annotations

import os
from typing import Any, Protocol

from maymust.durable.store import StoreError
from maymust.errors import RunError


class _Cipher(Protocol):
    def encrypt(self, data: bytes) -> bytes: ...
    def decrypt(self, token: bytes) -> bytes: ...


class Sealer:
    """Encrypts with a key, or refuses without one. Shows nothing of the key."""

    def __init__(self, key: str | bytes | None = None) -> None:
        self._cipher: _Cipher | None = None if key is None else _cipher(key)

    def __repr__(self) -> str:
        return f"<Sealer {'without' if self._cipher is None else 'with'} a key>"

    def seal(self, secret: str, *, tool: str) -> str:
        """The encrypted text. Raises RunError without a key."""
        if self._cipher is None:
            raise RunError(
                f"{tool} was called with a secret among its arguments (SecretStr), and this store has no key to encrypt it with; "
                "give one, SqliteStore(path, key=...), or let the tool take the secret from deps, which are never stored"
            )
        return self._cipher.encrypt(secret.encode("utf-8", "surrogatepass")).decode("ascii")

    def unseal(self, sealed: str, *, tool: str) -> str | None:
        """What was encrypted; None without a key. Raises StoreError for another key."""
        if self._cipher is None:
            return None
        try:
            return self._cipher.decrypt(sealed.encode("ascii")).decode("utf-8", "surrogatepass")
        except Exception as fault:
            raise StoreError(f"the stored secret of a call of {tool} cannot be decrypted: it was stored with another key") from fault


def _cipher(key: str | bytes) -> _Cipher:
    try:
        from cryptography.fernet import Fernet
    except ImportError as fault:
        raise RunError("key= needs the package cryptography: pip install 'maymust[durable]'") from fault
    try:
        made: _Cipher = Fernet(key)
    except Exception:
        # Without its cause: that could show a part of the key.
        raise RunError("key= is no key for encryption; make one with maymust.durable.sealing.new_key()") from None
    return made


def new_key() -> str:
    """A fresh key, as text. Keep it where other secrets are kept: without it nothing that was encrypted with it can be read."""
    import base64

    return base64.urlsafe_b64encode(os.urandom(32)).decode("ascii")


def sealed_calls(calls: tuple[Any, ...], sealer: Sealer) -> dict[str, str]:
    """The encrypted arguments of the calls of a turn that hold secrets and may still run, by call id. Raises RunError without a key."""
    return {
        record.call_id: sealer.seal(record.raw_arguments, tool=record.name)
        for record in calls
        if record.shown is not None and not record.sealed and record.status != "done" and record.refusal is None
    }
