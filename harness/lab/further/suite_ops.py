"""Upstream's tests of ``suite-ops``, for further targets."""

from lab.further.guests import register

register("suite-ops", __name__)
