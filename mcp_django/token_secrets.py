"""The shape of personal tokens: `mcp_`, 43 random characters and a checksum, all base62.

The prefix and the checksum let secret scanners recognize a leaked token without false alarms.
There is no separator inside, so that a double click selects it whole.
"""

from __future__ import annotations

import re
import secrets
from zlib import crc32

from django.core.signing import b62_encode
from django.utils.crypto import get_random_string

PREFIX = "mcp_"
PATTERN = r"mcp_[0-9A-Za-z]{49}"
#: 62 ** 43 is just over 2 ** 256.
RANDOM_LENGTH = 43
#: 62 ** 6 is over 2 ** 32.
CHECKSUM_LENGTH = 6
HINT_LENGTH = 4

_whole = re.compile(PATTERN, re.ASCII)


def new_secret() -> str:
    body = PREFIX + get_random_string(RANDOM_LENGTH)
    return body + checksum(body)


def checksum(body: str) -> str:
    return b62_encode(crc32(body.encode("ascii"))).rjust(CHECKSUM_LENGTH, "0")


def is_well_formed(text: str) -> bool:
    """Whether this may be a token at all. Says so without a query, hence for typing errors."""
    if _whole.fullmatch(text) is None:
        return False
    body, check = text[:-CHECKSUM_LENGTH], text[-CHECKSUM_LENGTH:]
    return secrets.compare_digest(checksum(body), check)


def hint_of(secret: str) -> str:
    """What people see of a token afterwards: enough to tell two apart."""
    return secret[len(PREFIX) :][:HINT_LENGTH]
