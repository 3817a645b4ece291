"""The ways in which services of this interface differ, as switches that combine freely."""

import random
from dataclasses import dataclass, field, fields, replace
from typing import Any


@dataclass(frozen=True)
class Variants:
    """Defaults are the specification's word; every other value is an observed or a plausible deviation."""

    numbers: bool = False  # ids and numbers as JSON numbers instead of strings
    empty_as_list: bool = False  # `[]` where an empty object is due (row 16)
    empty_as_null: bool = False  # null there, and for empty lists inside entries
    booleans: bool = False  # true and false instead of 0/1 and Yes/No
    number_keyed: str = ""  # "", "items" or "all": lists as objects keyed by 1-based numbers
    envelope: bool = True  # False: the bare payload of some samples
    content_type: str = "application/json"
    page_cap: int | None = None  # the most rows of one page, whatever `limit` says
    ignore_page: bool = False
    #: Pages have the service's default size (10 or 100); with ignore_page everything at once.
    ignore_limit: bool = False
    past_end: str = "empty"  # or "last": the last page again
    #: A row is added in front between two pages: each page repeats the last row of the one before.
    shifting: bool = False
    limit_per_group: bool = False  # the campaigns' `limit` and `page` count within each status group
    count: str = "page"  # "page", "total", "missing" (row 15), "wrong": far above what there is
    error_status: int = 200  # HTTP status of an error envelope (row 2)
    bad_key: int = 1002  # or 1000 with HTTP 401 (row 1)
    rate_place: str = "top"  # "top", "response", "header", "data", "none": where the rate-limit object stands
    rate_headers: bool = True
    rate_strings: bool = False
    #: What the rate-limit object says when it is not the limit that is kept (row 27).
    reported_limit: int | None = None
    other_client: int = 0  # requests of each window that another client of the account uses up
    clock_skew: int = 0  # seconds that the service's clock, and so `reset`, is ahead of ours
    timeline_cut: int | None = None  # the most timeline entries served of one contact
    date_form: str = "%m/%d/%Y %H:%M"  # one of dates.FORMS, or "mixed"
    spec_dates: bool = True  # each field in its own form of the specification; False: all in date_form
    thin_listings: bool = False  # most fields only in the detail answers
    fields_in_getlists: bool = False  # custom-field labels in the listing too (row 17)
    confirmation_spelled_right: bool = False
    custom_fields: str = "beside"  # "beside" (by field id), "fields" (in an object), "none"
    strange_networks: bool = False
    extra_fields: bool = False  # every entry has fields that nobody announced
    lowercase_business: bool = False
    max_range_days: int | None = None  # longer date ranges are refused
    missing: frozenset[str] = frozenset()  # operations answered with an error
    missing_code: int = 1002  # or 1000, as if the key were wrong (row 41)
    broken: frozenset[str] = frozenset()  # operations answered with 500 for ever
    faults: dict[str, float] = field(default_factory=dict)  # fault -> share of requests
    stall_seconds: float = 1.0

    def __hash__(self) -> int:
        return hash(repr(self))

    def described(self) -> str:
        """Only what differs from the specification."""
        parts = (
            f"{each.name}={getattr(self, each.name)!r}"
            for each in fields(self)
            if getattr(self, each.name) != getattr(_SPECIFIED, each.name)
        )
        return ", ".join(parts) or "as specified"


_SPECIFIED = Variants()


def live_like() -> Variants:
    """What most observations of the live service agree on, at its worst."""
    return Variants(
        numbers=True,
        empty_as_list=True,
        number_keyed="all",
        page_cap=7,
        count="total",
        error_status=400,
        bad_key=1000,
        rate_place="response",
        rate_strings=True,
        date_form="mixed",
        spec_dates=False,
        thin_listings=True,
        custom_fields="fields",
        strange_networks=True,
        extra_fields=True,
        lowercase_business=True,
        content_type="text/html; charset=UTF-8",
    )


def drawn(rng: random.Random) -> Variants:
    """A random combination, each switch on its own; faults and outages in a third of them."""

    def flip(share: float = 0.5) -> bool:
        return rng.random() < share

    place = rng.choice(["top", "top", "response", "header", "data", "none"])
    chosen = Variants(
        numbers=flip(),
        empty_as_list=flip(),
        number_keyed=rng.choice(["", "items", "all"]),
        envelope=flip(0.9),
        content_type=rng.choice(["application/json", "text/html; charset=UTF-8", "text/javascript"]),
        page_cap=rng.choice([None, 1, 2, 3, 7, 25, 100]),
        ignore_limit=flip(0.2),
        past_end=rng.choice(["empty", "last"]),
        count=rng.choice(["page", "total", "missing"]),
        error_status=rng.choice([200, 400]),
        bad_key=rng.choice([1000, 1002]),
        rate_place=place,
        rate_headers=place == "none" or flip(),
        rate_strings=flip(),
        clock_skew=rng.choice([0, 0, 3600, -3600, 5]),
        timeline_cut=rng.choice([None, None, 2, 5]),
        date_form="mixed",
        spec_dates=flip(),
        thin_listings=flip(0.4),
        fields_in_getlists=flip(),
        confirmation_spelled_right=flip(),
        custom_fields=rng.choice(["beside", "fields", "none"]),
        strange_networks=flip(0.4),
        extra_fields=flip(0.4),
        lowercase_business=flip(0.3),
        max_range_days=rng.choice([None, None, 366, 400, 31 * 12]),
        faults={} if flip(0.65) else _some_faults(rng),
    )
    if flip(0.2):
        chosen = replace(chosen, ignore_page=True, page_cap=None)
    return _with_outage(chosen, rng)


def bold(rng: random.Random) -> Variants:
    """A drawn combination with deviations that nobody has reported, but that a careful client survives."""
    chosen = drawn(rng)
    extras: list[dict[str, Any]] = [
        {"shifting": True, "page_cap": rng.choice([2, 5, 9]), "ignore_page": False},
        {
            "limit_per_group": True,
            "page_cap": rng.choice([1, 2, 3]),
            "ignore_page": False,
            "count": rng.choice(["page", "total"]),
        },
        {"count": "wrong"},
        {"empty_as_null": True, "empty_as_list": False},
        {"booleans": True},
        {
            "error_status": 401,
            "missing": frozenset(rng.sample(EXPENDABLE, 2)),
            "missing_code": rng.choice([1000, 1002]),
        },
        {"reported_limit": 90},
    ]
    for extra in rng.sample(extras, 2):
        chosen = replace(chosen, **extra)
    return chosen


def _some_faults(rng: random.Random) -> dict[str, float]:
    names = ["500", "reset", "cut", "502-html", "200-html", "stall", "429", "empty"]
    return {name: rng.choice([0.01, 0.03, 0.06]) for name in rng.sample(names, rng.randint(1, 5))}


#: Operations whose loss must cost their own tables only.
_EXPENDABLE = {
    "reputation": "direct online sentiment stats",
    "socialmedia": "channels calendar stats getpost",
    "emailmarketing": "campaigns getcampaign stats getlists getlist getaudiences getcontacts getcontacttimeline "
    "getcoupon",
    "user": "lists managers groups",
    "goal": "lists listbydomain show",
    "webhook": "lists show",
}
EXPENDABLE = [f"{area}/{name}" for area, names in _EXPENDABLE.items() for name in names.split()]


def _with_outage(chosen: Variants, rng: random.Random) -> Variants:
    draw = rng.random()
    if draw < 0.2:
        return replace(chosen, missing=frozenset(rng.sample(EXPENDABLE, rng.randint(1, 4))))
    if draw < 0.35:
        return replace(chosen, broken=frozenset(rng.sample(EXPENDABLE, 1)))
    return chosen
