"""What is fetched, when, and which table it fills: one file per area of the service."""

from assets import account, campaigns, contacts, goals, lists, reputation, social, users, webhooks
from assets.extract import SOURCE_ASSETS

__all__ = ["SOURCE_ASSETS", "account", "campaigns", "contacts", "goals", "lists", "reputation", "social", "users", "webhooks"]
