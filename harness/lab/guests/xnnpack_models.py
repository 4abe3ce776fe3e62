"""XNNPACK's tests of whole models."""

from lab.guests.cases import register

register("xnnpack-models")
