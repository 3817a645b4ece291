"""Exit codes (design: 0 done, 1 some data could not be had or sent, 2 wrong usage or configuration).

0 only when what was asked for was done: a prompt that was declined or not answered is 1.
"""

DONE = 0
INCOMPLETE = 1
WRONG_USE = 2
INTERRUPTED = 130
