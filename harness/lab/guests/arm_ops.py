"""Arm's tests of single operators."""

from lab.guests.cases import register

register("arm-ops")
