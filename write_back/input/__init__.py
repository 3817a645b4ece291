"""The input of a push: reading it (`files`), its rows (`rows`), finding columns (`columns`), what
single cells mean (`values`)."""
