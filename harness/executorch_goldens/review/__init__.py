"""``goldens review``: a person's decisions about the causes of what runs found. Nothing is exported."""
