"""Starting goldens in a repository that has none: what ``python -m harness init`` looks for and writes."""
