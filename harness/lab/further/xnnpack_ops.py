"""Upstream's tests of ``xnnpack-ops``, for further targets."""

from lab.further.guests import register

register("xnnpack-ops", __name__)
