"""``goldens compare BASE HEAD``: the same models exported by two toolchains, without a golden.

Both export under the same variations, with the same patches and shortcuts (`sides`). Each is judged by itself, as
a run judges, and then the head against what the base made (`making`, `outcome`). `page` says what came of it, worst
first and by cause; `programs` runs what the base made in the runtime of the head.
"""
