"""Reading what people want to push: files and queries as rows of named cells, and what single cells mean. Nothing is decided here."""
