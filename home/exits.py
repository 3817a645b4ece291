"""Exit codes, and the base classes of errors that decide them. 0 means that the request was
fulfilled: a prompt that was declined or not answered gives 1."""

DONE = 0
INCOMPLETE = 1
WRONG_USE = 2
INTERRUPTED = 130


class WrongUse(Exception):
    """A command, setting or argument must be changed first: the message says how."""


class HomeError(WrongUse):
    """The home cannot be used: the message names the folder and what to do."""


class Incomplete(Exception):
    """An expected problem: the message says what to do."""
