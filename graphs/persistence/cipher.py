"""Encryption at rest: what the SQLite files hold of conversations and memory is unreadable without the key.

Values are encrypted, with the AES-GCM of `cryptography`: states, what a superstep wrote, and the store's values. What
finds them stays readable: ids of threads and runs, users (in the store as hashes), names of agents, times.
"""

import json
import os
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final

import aiosqlite
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from langgraph.checkpoint.serde.base import CipherProtocol, SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

NAME: Final = "aesgcm"
_NONCE_BYTES: Final = 12
_SEALED: Final = "palimpsest_encrypted"
_PROBE: Final = b"palimpsest"
_HAS_PROBE: Final = "SELECT 1 FROM sqlite_master WHERE name = 'palimpsest_key'"


class WrongKey(ValueError):
    """What is stored was encrypted with another key, or was changed."""

    def __init__(self, said: str = "LANGGRAPH_AES_KEY does not fit what is stored") -> None:
        super().__init__(f"{said}: set the key that it was encrypted with, or begin with an empty PALIMPSEST_DATA_DIR")


class Cipher(CipherProtocol):
    """Encrypts and decrypts with one key.

    Args:
        key: 16, 24 or 32 bytes.
        random: Returns so many random bytes.
    """

    def __init__(self, key: bytes, random: Callable[[int], bytes] = os.urandom) -> None:
        self._aes, self._random = AESGCM(key), random

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        """Return the cipher's name, and the text that only the key opens."""
        nonce = self._random(_NONCE_BYTES)
        return NAME, nonce + self._aes.encrypt(nonce, plaintext, None)

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        """Return what was encrypted; `WrongKey` if another key, or another cipher, did it."""
        if ciphername != NAME:
            raise WrongKey
        try:
            return self._aes.decrypt(ciphertext[:_NONCE_BYTES], ciphertext[_NONCE_BYTES:], None)
        except InvalidTag:
            raise WrongKey from None

    def serializer(self, serde: SerializerProtocol) -> SerializerProtocol:
        """Return LangGraph's own serializer that encrypts; what was written without encryption is read on."""
        return EncryptedSerializer(self, serde)

    def seal(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return a store's value so that it tells nothing; `TypeError` if it is no JSON."""
        try:
            said = json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
        except ValueError as error:  # a lone surrogate, or NaN: the store itself refuses it with this class
            raise TypeError(str(error)) from error
        _, sealed = self.encrypt(said)
        return {_SEALED: b64encode(sealed).decode()}

    def unseal(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a store's value says; one that was written without encryption as it is."""
        if not is_sealed(value):
            return dict(value)
        opened: dict[str, Any] = json.loads(self.decrypt(NAME, b64decode(value[_SEALED])))
        return opened

    def open_blob(self, kind: str, blob: bytes) -> bytes:
        """Return the bytes of a state as they are without encryption; the kind is the one that stands beside it."""
        return self.decrypt(kind.partition("+")[2], blob) if "+" in kind else blob


async def check_key(connection: aiosqlite.Connection, cipher: Cipher | None) -> None:
    """See to it that a file is opened with the key that it was first encrypted with.

    Args:
        connection: To the file.
        cipher: What is configured; `None` for no encryption.

    Raises:
        WrongKey: If it is another one, or none.
    """
    async with connection.execute(_HAS_PROBE) as cursor:
        has_probe = await cursor.fetchone() is not None
    if cipher is None:
        if has_probe:
            raise WrongKey("what is stored is encrypted, and LANGGRAPH_AES_KEY is not set")
        return
    await connection.execute("CREATE TABLE IF NOT EXISTS palimpsest_key (probe BLOB NOT NULL)")
    async with connection.execute("SELECT probe FROM palimpsest_key") as cursor:
        probes = [bytes(row[0]) for row in await cursor.fetchall()]
    for probe in probes:
        cipher.decrypt(NAME, probe)
    if not probes:
        await connection.execute("INSERT INTO palimpsest_key (probe) VALUES (?)", (cipher.encrypt(_PROBE)[1],))


def is_sealed(value: Mapping[str, Any]) -> bool:
    """Say whether a store's value is encrypted."""
    return list(value) == [_SEALED] and isinstance(value[_SEALED], str)
