"""The page `docs/sandbox.md`, written from the declarations: `python -m marketing_api.sandbox.page`. A test fails when it is stale."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

from marketing_api.sandbox.control import PATHS
from marketing_api.sandbox.faults import FAULTS
from marketing_api.sandbox.options import DEFAULT_KEY
from marketing_api.sandbox.switches import AS_OBSERVED, NUMBER, RATE_OBSERVED, SWITCHES, Switch

PAGE = Path(__file__).parents[2] / "docs" / "sandbox.md"

_INTRO = f"""\
# The sandbox

Written by `python -m marketing_api.sandbox.page` from `marketing_api/sandbox/`; change it there.

The service has no test environment, so this project brings one: a real HTTP server on this machine with an invented restaurant's
account. It knows every operation, reads and writes, enforces the rate limit, and can be told to misbehave. It listens on the
loopback only, and nobody in it exists: addresses are at reserved domains, phones in an area code that is not in use.

```
marketing-sync sandbox --port 8765 --contacts 600          # prints its address and key; Ctrl-C ends it
marketing-sync sandbox --help                              # every option
curl 'http://127.0.0.1:8765/1/app/me.json?key={DEFAULT_KEY}'
```

In tests: `with serve(Options(contacts=600)) as url:` (a thread of the same process, `marketing_api.sandbox.server`) or
`with spawn("--contacts", "600") as url:` (a child process that ends with its parent, `marketing_api.sandbox.cli`).

## The account

Everything is a function of the seed, the number of contacts and the clock: the same options show the same account, down to every
open and click. Contacts are computed when they are asked for, so a million start in a second and take no memory.

- The account shows exactly `--contacts` contacts at its start, which is the present or `--now`, after two years of history; it goes
  on living as time passes. With `--now` the clock stands still until it is advanced, without it the clock is the real one.
- Five lists, on which one address in twelve stands twice with different contact ids; about thirty-five campaigns and automations in all
  status groups; timelines of a dozen entries; coupons, reviews, posts, short links, users of three businesses, goals, webhooks.
- Opens, clicks, bounces and unsubscriptions in the statistics of a campaign equal those in the timelines of its recipients, exactly.
- Some 8 % of the contacts unsubscribe sooner or later, 4 % bounce (mostly at `old.example.net`), mails to `filtered.example.org` are
  hardly ever opened, 4 % never confirm and are deleted after 45 days, 2 % never open a mail and are deleted after 400 days.
- With `--state FILE` writes and the clock's advances are kept in a journal and done again at the next start. The account's origin is
  kept there, too, and wins over the options.
- Several accounts on one server: `--account NAME=KEY:SEED:CONTACTS`, as often as wanted; each key has its own rate limit.

## What it is made after

**Specified** is what the interface's specification says; the sandbox follows it wherever no switch is set. **Observed** is what clients of
the live service have met; there is a switch for each such behaviour. **Assumed** is everything else: nobody has shown it, so do not
build on it. Always as observed, since nothing specified contradicts it:

- writes answer with `id` and `item`, `post_id` and `item`, or `item` alone (row 7); paths ignore case and need no `.json` (row 9);
- names of parameters are trimmed and folded, unknown ones ignored (row 10); query, form and JSON are merged (row 11); any verb does
  (row 13);
- a page past the end of a paged listing counts 0 (row 14); contact status is a code from 0 to 3 (row 18); details of automated
  entries have no label (row 22); clickers look like `name@example.com(2 clicks)` (row 25); the six rate-limit headers stand on
  every answer (row 27); custom fields may come as one text, `9100:Ann,9103:Rome` (row 33).

Assumed, without a switch:

- error codes 1003 (does not exist), 1004 (call not valid), 429 and 405; the wording of every sentence; disabled users show `Disabled`;
- of a parameter that is repeated the last value counts, unless the name ends in `[]` or `[0]`, `[1]`, …; JSON null counts as not sent;
- timelines are newest first; campaign entries have the details `subject`, `send-date`, `open-date`, `links-clicked` (all clicks
  together); the snippet is the campaign's subject; every click is one utm visit; unsubscribing leaves no entry, only the status tells;
- a page of the campaigns listing is cut from all groups together, in the order Sent, Scheduled, Draft, Automation;
- the header's `limit` is the rate limit; `stats.items` of the reputation statistics is empty; a period is a day;
- the weeks and months of the feedback filter are the last 7 and 30 days; a channel shows its latest 60 reviews;
- custom-field values stand in the contact, the empty ones too; a moved contact keeps its id; deleting a list deletes its contacts;
- adding a contact to several lists makes several contacts, and the answer names the first; contacts that were added receive what is
  sent to their list from then on, but trigger no automation; a campaign that is neither draft nor scheduled is sent at once;
- a deleted campaign that was sent stays in the timelines; texts of one that was sent can still be changed, its recipients cannot;
- a write is refused when it names a custom field, domain, channel, audience, list or group that is not there (switch `unknown-ids`);
  `channelid` may be one of the specified 1 to 4 or the id of a page or profile of the network;
- `.xml` answers with the plain mapping of the same envelope: the root is `response`, what stands beside it in JSON follows its children,
  entries of a list are `<item>`, names that XML does not allow are `<entry key="…">`, null is an empty element. The specification
  offers XML and shows no sample.

Not there: uploaded pictures (the file is accepted, its link is invented), audiences as recipients of campaigns, permissions of users.
"""


def render() -> str:
    """The whole page."""
    lines = [_INTRO, *_switches(), *_faults(), *_control()]
    return "\n".join(lines).rstrip() + "\n"


def _switches() -> Iterator[str]:
    yield "## Switches\n"
    yield "Options of the command, or `/sandbox/switches?name=value` while it runs. The first value is the default, and as specified where"
    yield "the specification says anything. Rows are those of the observations. Ground *variant*: the specification itself says both.\n"
    observed = ", ".join(f"`{name} {value}`" for name, value in AS_OBSERVED.items())
    yield "To try out a program that was written for the live service, start with `--as-observed`. It stands for what clients agree on:"
    yield textwrap.fill(f"`rate-limit {RATE_OBSERVED}`, {observed}; options given beside it win.", 130, break_on_hyphens=False) + "\n"
    yield "| switch | values | row | ground | what it does |"
    yield "|---|---|---|---|---|"
    for switch in SWITCHES:
        yield f"| `--{switch.name}` | {_values(switch)} | {switch.row} | {switch.ground} | {switch.doc} |"
    yield ""


def _values(switch: Switch) -> str:
    others = [f"`{choice}`" for choice in switch.choices if choice != switch.default]
    return ", ".join([f"**`{switch.default}`**", *(others or [NUMBER])])


def _faults() -> Iterator[str]:
    yield "## Faults\n"
    yield "Options `--fault-NAME P[@OPERATION,…]`, or `/sandbox/faults?NAME=P` while it runs; P is a probability, 1 makes it permanent."
    yield "Which request is hit depends on `--fault-seed`, the question and how often it was asked, not on the order of requests."
    yield "`--revoke-after N` ends the key after N requests, `--latency-ms MEDIAN,P99` delays answers (log-normal),"
    yield "`--jitter-ms MEDIAN,P99` delays the counting of requests.\n"
    yield "| fault | effect takes place | what happens |"
    yield "|---|---|---|"
    for fault in FAULTS:
        yield f"| `{fault.name}` | {'yes' if fault.has_effect else 'no'} | {fault.doc}{' (writes only)' if fault.writes_only else ''} |"
    yield ""


def _control() -> Iterator[str]:
    yield "## Control paths\n"
    yield "Beside `/1`, without key and limit, GET or POST, answered in plain JSON. `account=NAME` picks one of several accounts.\n"
    yield "| path | what it does |"
    yield "|---|---|"
    for path, handle in PATHS.items():
        yield f"| `/sandbox/{path}` | {' '.join((handle.__doc__ or '').split())} |"
    yield ""


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    print(f"wrote {PAGE}")
