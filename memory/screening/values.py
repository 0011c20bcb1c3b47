"""The values of a user's secrets, known again wherever a text repeats them: by digests, under a key of the user. Pure.

Nobody reads a value from its digest without the key, and an erase of everything takes both along. Signs, blanks and
case do not count: `plover-7731` is told by "p l o v e r 7 7 3 1", too, and its digits are told by "77 31".
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import accumulate
from typing import Final, Self

from memory.screening.door import compatible
from memory.screening.secrets import values_in

_LEAST: Final = 4
_LONGEST: Final = 200  # so many characters the longest seed phrase of a wallet has at most (BIP 39)
_MOST: Final = 400
_RUN = re.compile(r"\d+|[a-z]+|[^\W\d_a-z]")


@dataclass(frozen=True, slots=True)
class SecretValues:
    """What is known of a user's secrets.

    Attributes:
        key: The user's own, random; empty where no value is known.
        digests: Of each value, and of its digits, with the number of characters; the oldest first. As a list: Postgres
            keeps no order of a mapping's keys.
    """

    key: str = ""
    digests: tuple[tuple[str, int], ...] = ()

    def learned(self, values: Iterable[str], key: str, least: int = _LEAST) -> Self:
        """Return what is known once these values are known, too: the newest 400 digests.

        Args:
            values: The values, as somebody told them.
            key: A random key, for a user who has none.
            least: A value of fewer characters is left out; of its digits alone, four count.
        """
        after, wholes = replace(self, key=self.key or key), ["".join(_runs(value)) for value in values]
        digits = values_in(" ".join("".join(filter(str.isdigit, whole)) for whole in wholes))
        forms = [each for each in wholes if len(each) >= least] + [each for each in digits if len(each) >= _LEAST]
        told = [(after._digest(each), len(each)) for each in dict.fromkeys(forms) if len(each) <= _LONGEST]
        fresh = [each for each in told if each not in self.digests]
        return replace(after, digests=(*self.digests, *fresh)[-_MOST:]) if fresh else self

    def are_in(self, text: str) -> bool:
        """Say whether a text repeats one of them."""
        if not self.digests:  # asked of every line of a journal, by users who told no secret
            return False
        digests = dict(self.digests)
        lengths = frozenset(digests.values())
        runs = _runs(text)
        joined, ends = "".join(runs), list(accumulate(map(len, runs), initial=0))
        is_end = frozenset(ends)
        return any(
            self._digest(joined[at : at + length]) in digests
            for at in ends
            for length in lengths
            if at + length in is_end
        )

    def _digest(self, value: str) -> str:
        return blake2b(value.encode("utf-8", "replace"), key=self.key.encode(), digest_size=8).hexdigest()


NO_SECRETS: Final = SecretValues()


def _runs(text: str) -> list[str]:
    return _RUN.findall(compatible(text).casefold())
