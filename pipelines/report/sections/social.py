"""What is posted, who mentions the business, and what is clicked."""

from __future__ import annotations

from pipelines.report import words
from pipelines.report.data import AccountData
from pipelines.report.html import Html
from pipelines.report.parts import Heading, named, section, table
from pipelines.report.sections.freshness import nothing

_NETWORKS = [Heading("Network", is_number=False), Heading("Mentions, 28 days"), Heading("Posts, 28 days")]
_POSTS = [Heading("Post", is_number=False), Heading("Clicks")]


def social(account: AccountData) -> Html:
    """Mentions and posts by network, and the posts whose links were clicked most."""
    anchor, title = f"{account.name}-social", "Social networks"
    networks, posts = account.rows["networks"], account.rows["posts"]
    if not networks and not posts:
        return section(anchor, title, "", nothing(account, "No social network is connected.", "social_profiles", "social_media_stats"))
    by_network = [[_name(row["network"]), words.count(row["mention_count"]), words.count(row["post_count"])] for row in networks]
    by_post = [
        [
            named(words.cut(row["message"] or "(no text)", 110), f"{_name(row['network'])}, {words.day(row['published_at'])}"),
            words.count(row["click_count"]),
        ]
        for row in posts
    ]
    return section(
        anchor,
        title,
        "Mentions of the business, own posts, and clicks on their links.",
        table(_NETWORKS, by_network) if by_network else None,
        table(_POSTS, by_post, caption="Most clicked posts") if by_post else None,
    )


def _name(network: str) -> str:
    return {"linkedin": "LinkedIn", "youtube": "YouTube", "tiktok": "TikTok", "googleplus": "Google+"}.get(network, network.capitalize())
