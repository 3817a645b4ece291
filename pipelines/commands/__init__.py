"""The commands of `marketing-sync`, one module each: `add_arguments(parser)` and `run(arguments, settings) -> exit code`."""
