"""``goldens run --watch``: a run after each saved file that its cells depend on, in templates that stay."""
