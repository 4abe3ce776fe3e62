"""Starting goldens in a repository that has none: the files that ``goldens init`` writes."""
