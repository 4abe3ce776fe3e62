"""``goldens show --explore``: a cell in Google's Model Explorer, its golden and a run's result side by side.

The graphs are those of the decoded texts (`graphs`), coloured by what the harness knows of each operator (`overlays`).
Arm's adapters show the payloads themselves (`adapters`). Model Explorer's own server shows all of it (`server`).
"""
