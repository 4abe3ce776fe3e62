"""A golden-artifact regression harness for ExecuTorch exports."""
