"""``python -m lab.corrections``: digests of the installed ExecuTorch, those of the corrections with the others."""

import runpy

runpy.run_module("executorch_goldens.patches", run_name="__main__")
