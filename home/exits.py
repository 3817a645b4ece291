"""Exit codes. 0 only when what was requested was done: a prompt that was declined or got no reply is 1."""

DONE = 0
INCOMPLETE = 1
WRONG_USE = 2
INTERRUPTED = 130
