"""One module a subcommand of ``python -m harness``; nothing imports from here."""
