"""Exit codes, and the roots of errors that decide them. 0 only when what was requested was done: a
prompt that was declined or got no reply is 1."""

DONE = 0
INCOMPLETE = 1
WRONG_USE = 2
INTERRUPTED = 130


class WrongUse(Exception):
    """What was typed, given or configured has to be changed first: the message says how."""


class HomeError(WrongUse):
    """The home cannot be used: the message names the folder and what to do."""


class Incomplete(Exception):
    """Something foreseen went wrong: the message says what to do."""
