"""What a push would do and what it came to, for people: terminal, log, Dagster, files. Nothing is sent or decided here."""
