"""All rules: importing the areas fills the table of rules."""

from marketing_api.sandbox import account, campaigns, contacts, goals, lists, reputation, social, timelines, users, webhooks
from marketing_api.sandbox.call import RULES

__all__ = ["RULES", "account", "campaigns", "contacts", "goals", "lists", "reputation", "social", "timelines", "users", "webhooks"]
