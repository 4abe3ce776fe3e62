"""``goldens diff 1.3.1 1.4.1``: changes between two releases, from the goldens alone.

Every cell that both releases have is read into facts (`reading`): whether it lowers, its delegates, their operators,
attributes and constants, what stays outside of them, the program's size. The differences (`differences`) are grouped by
what changed, not by cell (`report`): one cause is one entry, with the cells that show it.
"""
