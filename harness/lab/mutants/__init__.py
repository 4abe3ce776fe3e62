"""Deliberate defects: mutants that are drawn by rule, and real fixes of upstream's that are taken back.

Each is an edit of the installed ExecuTorch, made in exporting processes only, by the way that patches go.
"""
