"""What was exported before: everything that an artifact depends on, its key, and the store that keeps it."""
