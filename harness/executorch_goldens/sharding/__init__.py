"""A run in parts: shards, how their results become one again, and the ledger of whole runs."""
