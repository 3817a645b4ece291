"""Exit codes (design: 0 done, 1 some data could not be had or sent, 2 wrong usage or configuration)."""

DONE = 0
INCOMPLETE = 1
WRONG_USE = 2
INTERRUPTED = 130
