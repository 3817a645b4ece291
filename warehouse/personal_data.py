"""The ways of treating personal data in a copy that others read, as a setting names them. Imports nothing: settings load fast.

Not here: doing it (`masking`).
"""

from enum import StrEnum

#: Characters of a key for hashes; a shorter one could be guessed.
LEAST_KEY = 16
#: People that a group has at least which is shown by a name that tells of them.
GROUP_MIN = 5


class PersonalData(StrEnum):
    """What becomes of it; each keeps less than the one before."""

    KEEP = "keep"
    HASH = "hash"
    DROP = "drop"
