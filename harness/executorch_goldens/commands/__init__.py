"""One module a subcommand of ``goldens``; nothing imports from here."""
