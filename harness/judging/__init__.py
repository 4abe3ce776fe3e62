"""What is said of a cell: verdicts, goldens, the pass that made a difference."""
