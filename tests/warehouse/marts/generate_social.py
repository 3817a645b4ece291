"""Posts, short links and their clicks of a made-up account."""

from tests.warehouse.marts.made import Made
from tests.warehouse.marts.rows import Row

_NETWORKS = ("facebook", "twitter", "linkedin")


def social_rows(made: Made) -> dict[str, list[Row]]:
    """Sixty posts from four months ago to a month ahead, twenty links in about half of them."""
    links = []
    for number in range(20):
        urls = (f"https://go.example.com/{number:x}", f"https://shop.example.com/{number}")
        at = None if number == 3 else made.moment(made.draw.random() * 60)
        gone_at = made.moment(1) if number == 5 else None
        columns = "link_id short_url real_url created_at track_count _deleted_at"
        links.append(made.row(columns, number, *urls, at, made.draw.randint(0, 99), gone_at))
    posts = [row for number in range(60) for row in _post(made, number)]
    return {
        "social_links": links,
        "social_link_clicks": _clicks(made),
        "social_posts": posts,
        "social_post_details": _details(made, posts),
    }


def _post(made: Made, number: int) -> list[Row]:
    first, second = made.draw.randrange(25), made.draw.randrange(25)  # some of them are unknown
    url = f"https://go.example.com/{first:x}"
    text = made.draw.choice(["Come in", f"Look: {url}.", f"({url})"])
    if made.chance(0.2):
        text += f" and https://go.example.com/{second:x}"
    scheduled_at = made.moment(made.draw.random() * 150 - 30)
    channel = {"channel_name": "Our page", "channel_type": "page"}
    shown = {
        "scheduled_at": None if number == 11 else scheduled_at,
        "message": None if number == 12 else text,
    }
    shown["photo_url"] = "https://images.example.com/1" if number % 3 else None
    networks = made.draw.sample(_NETWORKS, made.draw.randint(1, 3))
    return [made.row("post_id network", number, network, **channel, **shown) for network in networks]


def _details(made: Made, posts: list[Row]) -> list[Row]:
    rows = []
    for post in posts:
        if made.chance(0.7):
            at = None if made.chance(0.3) else post["scheduled_at"]
            gone_at = made.moment(2) if made.chance(0.1) else None
            columns = "post_id network title posted_at _deleted_at"
            rows.append(made.row(columns, post["post_id"], post["network"], "Menu", at, gone_at))
    return rows


def _clicks(made: Made) -> list[Row]:
    """Totals that grow; a network is named from some night on."""
    rows = []
    for link_id in range(20):
        for network in made.draw.sample(_NETWORKS, made.draw.randint(0, 3)):
            count = made.draw.randint(0, 5)
            first = made.draw.choice(made.nights)
            for night in made.nights:
                count += made.draw.randint(0, 4)
                if night >= first and not made.chance(0.05):
                    columns = "link_id network observed_on click_count"
                    rows.append(made.row(columns, link_id, network, night, count))
    return rows
