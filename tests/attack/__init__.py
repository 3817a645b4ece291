"""Attacks on the whole: what fails once at every place, lies, floods or comes at the wrong moment must not
hurt.

A module here is one attack: `attack(minutes, seed) -> str` returns a summary in Markdown and raises
AssertionError, with the seed and the command that replays it, when something did hurt. One that has cases takes
`only` as a third argument. `python -m tests.attack` (`make attack`) runs them all; a short sample of each is an ordinary test beside it
(`test_NAME.py`)."""
