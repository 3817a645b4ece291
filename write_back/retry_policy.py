"""The retry policy of pushes: time-outs, back-off, how often something is tried; the figures with their
reasons."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Times in seconds. Tests pass shorter ones."""

    #: Sixteen are enough for 15 requests/s at 600 ms and more; stalled ones must not hold up the others.
    workers: int = 24
    #: Without a byte for so long, a response counts as lost. Longer would only keep a worker from other work:
    #: what happened is found out by looking.
    timeout_s: float = 30.0
    #: The queue of synccontact was seen to take seconds (api-observed row 6). What is there after the first
    #: look is found cheaply; what is not there after the last one is taken never to have arrived.
    first_look_s: float = 6.0
    last_look_s: float = 30.0
    #: What is idempotent is not looked for: it is sent again with exponential back-off, three times as long
    #: each time (40 s in all).
    repeat_s: float = 1.0
    #: An item whose response is lost again and again is left unknown, for a person.
    attempts: int = 5
    #: Errors in a row, with nothing applied between them, after which nothing more is sent.
    unavailable_in_row: int = 5
    unknown_in_row: int = 15
    #: Reading back waits so long for the queue, looking every so often.
    verify_wait_s: float = 30.0
    verify_every_s: float = 3.0


RETRY_POLICY = RetryPolicy()
