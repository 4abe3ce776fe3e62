"""Branches of a release's own sources that exports take.

A branch is a jump that a line of a function may make, where there are several. coverage.py finds and follows them;
no other export needs it. `recorder` writes down, in the process that exports, what one export takes. `records` keeps
that, a file for each export. `sources` reads from a release which branches there are, and whose. `page` counts.
"""

#: Folders of the package ``executorch`` whose code decides what is lowered, and how.
FOLDERS = (
    "backends/arm/_passes",
    "backends/arm/operator_support",
    "backends/arm/operators",
    "backends/xnnpack/_passes",
    "backends/xnnpack/operators",
    "backends/xnnpack/partition",
    "backends/transforms",
)

#: Folders whose code a backend here may run; of others, only what these import.
BACKENDS = ("backends/arm", "backends/xnnpack")

#: Environment variable: the folder that exporting processes write their records to.
RECORDS = "GOLDENS_BRANCHES"
#: The module that writes records, in exporting processes.
RECORDER = "lab.branches.recorder:Recorder"
