"""Runs programs of one release in the runtimes of others.

`recorder` has an ordinary export write down its program with what it was run on, `programs` makes and keeps these for
the cells of a release, in the form of `corpus`. `running` has `field.running` run them in a release's
environment, `judging` says what came of each, `goldens` holds what was reviewed and `page` shows it to people.
"""

#: Environment variable: the folder that exporting processes write their programs to.
RECORDS = "GOLDENS_FIELDED"
#: The module that writes programs, in exporting processes.
RECORDER = "lab.fielded.recorder:Recorder"
