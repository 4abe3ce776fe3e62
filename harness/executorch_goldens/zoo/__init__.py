"""What is exported: cases, targets and variations. It imports neither torch nor executorch."""
