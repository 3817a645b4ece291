"""From rows to a plan: what is valid, what is known already, what is left to be sent. Nothing is asked of the service here."""
