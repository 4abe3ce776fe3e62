"""Starting goldens in a repository that has none: what ``goldens init`` looks for and writes."""
