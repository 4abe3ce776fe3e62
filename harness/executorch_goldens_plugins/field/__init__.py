"""Frozen programs: programs of a release with inputs and outputs, kept to try any later runtime on them.

`format` says what a corpus is, in memory and on disk; docs/plugins/field.md says the same to people. `reading` and
`writing` are all that touches its files. `runner` is one file that another interpreter runs, `running` drives it,
`comparing` says what came of it. `freezing` makes a corpus from exports, with `recorder` in the processes that export.
Only these two need a release, or a zoo.
"""
