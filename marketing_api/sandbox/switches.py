"""The switches: each makes the sandbox behave as observed in one row of api-observed.md instead of as specified.

Declared as data; the command-line options, `docs/sandbox.md` and a test per switch follow from it. What a switch does stands
where the behaviour is: `switches[name]`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

NUMBER = "a number"


@dataclass(frozen=True, slots=True)
class Switch:
    """`values` are its positions, the specified one first; where there is only one it is a whole number, and may be any other."""

    name: str
    row: str
    values: str
    doc: str
    ground: str = "observed"  # or variant: the specification says both; or assumed: nobody has shown it

    @property
    def default(self) -> str:
        return self.values.split()[0]

    @property
    def choices(self) -> tuple[str, ...]:
        words = tuple(self.values.split())
        return words if len(words) > 1 else ()

    def check(self, value: str) -> str:
        """The value as it is kept; ValueError with what is allowed."""
        word = value.strip().lower()
        if word in self.choices or (not self.choices and word.isdecimal()):
            return word
        raise ValueError(f"{self.name}: {value!r} is not allowed; choose {', '.join(self.choices) or NUMBER}")


SWITCHES: tuple[Switch, ...] = (
    Switch("bad-key", "1", "1002 401", "Response to a wrong key: errorCode 1002, or HTTP 401 with errorCode 1000."),
    Switch("error-status", "2", "200 400", "HTTP status of errors in the envelope."),
    Switch("email-missing", "3", "error nested", "Look-up by an unknown address: error header, or an error inside `contact`."),
    Switch("email-found", "4", "object array", "Look-up by address: the first contact, or an array with one entry per list."),
    Switch("addtag-missing", "5", "error soft", "Tagging an absent contact: error, or header `ok` with a sentence."),
    Switch("sync-delay", "6", "0", "Seconds until the effect of synccontact shows."),
    Switch("validation-fields", "8", "off on", "Validation errors list the bad fields in `fields`."),
    Switch("key-place", "12", "any query", "Where the key is accepted: anywhere, or in the query only."),
    Switch("deletions", "13", "any declared", "Verbs of deletions: any, or only the declared one (else HTTP 405)."),
    Switch("contact-paging", "14", "ignored honoured", "`limit` and `page` of getcontacts and getlists (default limit 100)."),
    Switch("page-cap", "14", "0", "Pages are at most so long, whatever `limit` says; 0: no cap."),
    Switch("page-ignored", "14", "off on", "Every page is the first page."),
    Switch("limit-ignored", "14", "off on", "Pages have their default length, whatever `limit` says."),
    Switch("count", "15", "total page", "`count` of paged listings: all entries, or those on the page."),
    Switch("items", "16", "list numbered", "Listings: list, or object keyed by 1-based number."),
    Switch("empty-object", "16", "object list", "An empty object is `{}`, or `[]`."),
    Switch("listed-fields", "17", "off on", "getlists shows the custom fields of each list, too."),
    Switch("confirmation", "17", "confimation confirmation both", "Spelling of the lists' confirmation members."),
    Switch("contact-status", "18", "code word", "Status of contacts: 0 to 3, or a word.", "assumed"),
    Switch("contact-fields", "19", "id label nested off", "Custom-field values in contacts: keyed by id, by label, in `fields`, none."),
    Switch("show-timezone", "20", "off on", "app/me shows the account's time zone."),
    Switch("dates", "21", "specified 24h 24h-pm 12h iso-12h dmy-12h iso-12h-tight mixed", "The form of local date-times."),
    Switch("timestamps", "21", "number text", "Unix timestamps in timelines."),
    Switch("nothing", "21", "n/a dash empty", "How a date that never was is written in timelines: `N/A`, `-`, empty."),
    Switch("detail-values", "22", "text number", "Counts in timeline details."),
    Switch("sent-key", "22", "email-campaign-sent mail-sent email-sent", "Key of campaign entries in timelines."),
    Switch(
        "channels",
        "23",
        "specified observed",
        "Social channels as specified, or with companies, boards, Instagram, TikTok, names (row 36).",
    ),
    Switch("clickers", "25", "any always never", "`clickers` of a link: when there are any, also when empty, or never."),
    Switch("over-100-percent", "25", "off on", "Percentages of campaign statistics are of a tenth of the recipients: some exceed 100."),
    Switch("action-deleted", "26", "off on", "The action of the first goal is `Action is deleted!`."),
    Switch("goal-decimals", "26", "2", "Digits after the point of a goal's value."),
    Switch("rate-limit-place", "27", "top response header data headers-only", "Where the `rate-limit` object stands."),
    Switch("rate-limit-values", "27", "text number", "Values of the `rate-limit` object."),
    Switch("rate-limit-after", "27", "0", "Seconds in `after` of a 429; 0: until the window resets."),
    Switch("header-extras", "28", "off on", "The header carries `cached`, and `limit` as text."),
    Switch("reputation", "30", "present gone", "Reputation operations: there, or error 1002."),
    Switch("sending", "34", "added edited", "A campaign is sent when it is added, or only when it is edited with `isscheduled=true`."),
    Switch("delete-everywhere", "35", "off on", "deletecontact without `listid` deletes the address from every list."),
    Switch("calendar-words", "37", "off on", "`from` and `to` of the calendar may have a time of day, or be `none`."),
    Switch("email-field", "38", "off on", "Every list has a required field `Email Address`, from which addcontact takes the address."),
    Switch("campaign-groups", "39", "groups list numbered", "Campaigns by status group, or a list or numbered object."),
    Switch("rating", "32", "php json number list", "The serialized rating of online reviews.", "assumed"),
    Switch("ids", "–", "text number", "Identifiers as text (as in most samples), or as numbers (as in the schemas).", "variant"),
    Switch("business-names", "–", "camel lower", "`businessName`, or `businessname` as in a variant.", "variant"),
    Switch("envelope", "–", "always writes", "Reads with the envelope, or bare as in some samples.", "variant"),
    Switch("required", "–", "primary variants", "Parameters that only a variant requires: optional, or required.", "variant"),
    Switch(
        "coupon-missing", "–", "empty error all", "Response for an address without coupons: empty list, error, or error for all.", "assumed"
    ),
    Switch("timeline-cut", "–", "0", "Timelines show only the newest so many entries, `total` counts all; 0: not cut.", "assumed"),
    Switch("series-cut", "–", "0", "Daily statistics of reputation list at most so many days; 0: not cut.", "assumed"),
    Switch("series-kept", "–", "first last", "Which days are listed of daily statistics that are cut.", "assumed"),
    Switch("activity-delay", "–", "0", "Seconds until a written activity shows in the timeline.", "assumed"),
    Switch("activity", "–", "snippet detail other-key", "Form of a written activity in the timeline.", "assumed"),
    Switch("tags", "–", "hidden contact timeline", "Where tags show: nowhere, in contacts, or as timeline entries.", "assumed"),
    Switch("sync-lists", "–", "all first refuse", "Several list ids in synccontact: all taken, only the first, or refused.", "assumed"),
    Switch("unknown-ids", "–", "refuse accept", "Writes that name an absent field, domain, channel, audience, list or group.", "assumed"),
    Switch("add-existing", "–", "refuse update duplicate", "addcontact with an address that is on the list.", "assumed"),
)
BY_NAME = {switch.name: switch for switch in SWITCHES}

#: Positions in which clients of the live service have met it, where they agree: what such a client is tried out against.
AS_OBSERVED: Mapping[str, str] = {
    "bad-key": "401", "email-missing": "nested", "email-found": "array", "addtag-missing": "soft", "sync-delay": "3",
    "validation-fields": "on", "contact-paging": "honoured", "listed-fields": "on", "show-timezone": "on", "channels": "observed",
    "rate-limit-after": "2", "header-extras": "on", "sending": "edited", "calendar-words": "on", "email-field": "on",
}  # fmt: skip
#: Requests a second that a client of the live service measured (api-observed row 27); the specification says 15.
RATE_SPECIFIED, RATE_OBSERVED = 15, 10


class Switches(dict[str, str]):
    """The positions of all switches."""

    def __init__(self, values: Mapping[str, str]) -> None:
        super().__init__({switch.name: switch.default for switch in SWITCHES})
        for name, value in values.items():
            self.set(name, value)

    def set(self, name: str, value: str) -> None:
        if name not in BY_NAME:
            raise ValueError(f"there is no switch {name!r}; there are {', '.join(BY_NAME)}")
        self[name] = BY_NAME[name].check(value)

    def number(self, name: str) -> int:
        return int(self[name])

    def is_on(self, name: str) -> bool:
        return self[name] == "on"
