"""Posts, short links and their clicks of a made-up account."""

from __future__ import annotations

from tests.warehouse.marts.made import Made
from tests.warehouse.marts.rows import Row

_NETWORKS = ("facebook", "twitter", "linkedin")


def social_rows(made: Made) -> dict[str, list[Row]]:
    """Sixty posts from four months ago to a month ahead, twenty links in about half of them."""
    links = [
        made.row(
            link_id=number,
            short_url=f"https://go.example.com/{number:x}",
            real_url=f"https://shop.example.com/{number}",
            created_at=None if number == 3 else made.moment(made.draw.random() * 60),
            track_count=made.draw.randint(0, 99),
            _deleted_at=made.moment(1) if number == 5 else None,
        )
        for number in range(20)
    ]
    posts = [row for number in range(60) for row in _post(made, number)]
    return {
        "social_links": links,
        "social_link_clicks": _clicks(made),
        "social_posts": posts,
        "social_post_details": _details(made, posts),
    }


def _post(made: Made, number: int) -> list[Row]:
    first, second = made.draw.randrange(25), made.draw.randrange(25)  # some of them are unknown
    text = made.draw.choice(
        ["Come in", f"Look: https://go.example.com/{first:x}.", f"(https://go.example.com/{first:x})"]
    )
    if made.chance(0.2):
        text += f" and https://go.example.com/{second:x}"
    scheduled_at = made.moment(made.draw.random() * 150 - 30)
    return [
        made.row(
            post_id=number,
            network=network,
            channel_name="Our page",
            channel_type="page",
            scheduled_at=None if number == 11 else scheduled_at,
            message=None if number == 12 else text,
            photo_url="https://images.example.com/1" if number % 3 else None,
        )
        for network in made.draw.sample(_NETWORKS, made.draw.randint(1, 3))
    ]


def _details(made: Made, posts: list[Row]) -> list[Row]:
    return [
        made.row(
            post_id=post["post_id"],
            network=post["network"],
            title="Menu",
            posted_at=None if made.chance(0.3) else post["scheduled_at"],
            _deleted_at=made.moment(2) if made.chance(0.1) else None,
        )
        for post in posts
        if made.chance(0.7)
    ]


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
                    rows.append(
                        made.row(link_id=link_id, network=network, observed_on=night, click_count=count)
                    )
    return rows
