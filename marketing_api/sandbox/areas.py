"""All rules: importing the areas fills the table."""

from __future__ import annotations

from marketing_api.sandbox import (
    business,
    campaigns,
    contact_writes,
    contacts,
    goals,
    lists,
    reputation,
    social,
    timelines,
    users,
    webhooks,
)
from marketing_api.sandbox.rules import RULES

__all__ = [
    "RULES",
    "business",
    "campaigns",
    "contact_writes",
    "contacts",
    "goals",
    "lists",
    "reputation",
    "social",
    "timelines",
    "users",
    "webhooks",
]
