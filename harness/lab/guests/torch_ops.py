"""The operators of PyTorch's own database, ``op_db``."""

from lab.guests.cases import register

register("torch-ops")
