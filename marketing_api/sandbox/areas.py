"""All rules: importing the areas fills the table."""

from __future__ import annotations

from marketing_api.sandbox import campaigns, contact_writes, contacts, lists, timelines
from marketing_api.sandbox.rules import RULES

__all__ = ["RULES", "campaigns", "contact_writes", "contacts", "lists", "timelines"]
