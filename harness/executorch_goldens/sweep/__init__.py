"""Exports of many cells: templates, their children, limits, and the cache of what they made."""
