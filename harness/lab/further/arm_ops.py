"""Upstream's tests of ``arm-ops``, for further targets."""

from lab.further.guests import register

register("arm-ops", __name__)
