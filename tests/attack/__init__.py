"""Attacks: what arrives, strikes or is pressed must not hurt."""
