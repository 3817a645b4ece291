"""Exit codes (design: 0 done, 1 some data could not be read or sent, 2 wrong usage or configuration).

0 only when what was requested was done: a prompt that was declined or got no reply is 1.
"""

DONE = 0
INCOMPLETE = 1
WRONG_USE = 2
INTERRUPTED = 130
