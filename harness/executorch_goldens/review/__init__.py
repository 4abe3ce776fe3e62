"""``goldens review``: proposals of past runs by cause, and a person's decisions.

A run leaves a proposal for each cell that is not as it should be (`proposals`). Those whose difference is the same
edit (`edits`), made by the same pass, are one group (`groups`). What a person accepts is recorded (`recording`), what
they reject is kept with the reason (`rejections`). Nothing is exported, and neither torch nor ExecuTorch is needed.
"""
