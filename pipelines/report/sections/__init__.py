"""The parts of an account's report, a file each, from its data to Html. Not here: reading (`data`), their order (`page`)."""
