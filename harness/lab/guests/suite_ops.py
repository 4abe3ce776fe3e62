"""The operators that ExecuTorch's suite tests every backend with."""

from lab.guests.cases import register

register("suite-ops")
