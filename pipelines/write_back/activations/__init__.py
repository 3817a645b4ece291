"""Segments as code: queries whose entering and leaving people are pushed after every night."""
