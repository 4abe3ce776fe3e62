"""Arm's tests of whole models."""

from lab.guests.cases import register

register("arm-models")
