"""Chance without state: every draw is a pure function of the seed and of what is drawn; picks can be counted in closed form."""

import hashlib
from dataclasses import dataclass

#: Shares and probabilities are whole parts of this, so that counting and picking can never disagree by a rounding error.
WHOLE = 1024


def salt(seed: int, *names: object) -> int:
    """32 bits that differ for every seed and name: the start of an independent series of draws."""
    text = repr((seed, *names)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=4).digest(), "big")


def spread(salt: int, index: int) -> int:
    """32 well-mixed bits for the `index`-th draw of a series."""
    mixed = (index + salt) * 0x9E3779B1 & 0xFFFFFFFF
    mixed = (mixed ^ mixed >> 15) * 0x85EBCA77 & 0xFFFFFFFF
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return mixed ^ mixed >> 16


@dataclass(frozen=True, slots=True)
class Share:
    """Picks `parts`/1024 of a sequence, evenly spread; `offset` (0 … 1023) shifts which ones.

    How many of the first n are picked is a formula, and so is the t-th pick: a million need not be looked at.
    """

    parts: int
    offset: int

    def count(self, first: int) -> int:
        return (first * self.parts + self.offset) // WHOLE

    def has(self, index: int) -> bool:
        return self.count(index + 1) > self.count(index)

    def nth(self, ordinal: int) -> int:
        """The position of the `ordinal`-th pick, from 0."""
        return -((self.offset - (ordinal + 1) * WHOLE) // self.parts) - 1


#: Multipliers for shuffling: primes above any length, so that each is coprime to every length.
_STRIDES = (2654435761, 2246822519, 3266489917, 668265263, 374761393)


@dataclass(frozen=True, slots=True)
class Shuffle:
    """A one-to-one map of 0 … length-1 onto itself, in both directions."""

    length: int
    draw: int

    def place(self, index: int) -> int:
        return (index * _STRIDES[self.draw % 5] + self.draw) % self.length

    def at(self, place: int) -> int:
        """The index that stands at `place`."""
        return (place - self.draw) * pow(_STRIDES[self.draw % 5], -1, self.length) % self.length if self.length > 1 else 0
