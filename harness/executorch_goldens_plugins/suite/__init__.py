"""The pytest fixture `golden_export`: a golden in a test of somebody's own suite."""
