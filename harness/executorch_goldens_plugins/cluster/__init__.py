"""Exports on a Dask cluster that people already have.

Four processes take part, and only two of them know Dask:

- the run, in the environment of its release (`cluster.sweep`): it hands out batches of exports and judges what
  comes back;
- beside it a client, in an environment with Dask (`cluster.client`): it deals them to workers, through the scheduler;
- on each machine a Dask worker, in an environment with Dask (`cluster.task`): it passes a batch on to
- an exporter, in that machine's environment of the release (`executorch_goldens_plugins.cluster.exporter`): it runs a
  `sweep.sweep.Sweep` as a run on that machine would, so that templates fork there, and never in a process of
  Dask's.

So the environment of a release needs no Dask, and no version has to agree with any of Dask's. Artifacts come back as
entries of the store (`sweep.store`) with what they were made from: an export on a machine with another
processor or setting is refused before it is made, and one from another file of the environment or of a zoo afterwards.
"""

from __future__ import annotations

#: A Dask worker's resource for a release that it can export with; it has as much of it as it makes exports at once.
RESOURCE = "executorch-{}"

#: Variable of a Dask worker's environment: JSON with ``interpreters`` (release to Python), ``jobs``, ``store``, and
#: the names of the ``variables`` that exports see: those that the person's environment has, without what Dask adds.
OFFER = "EXECUTORCH_GOLDENS_OFFER"

#: Variable that names the Python with Dask that a run starts its client in; by default the run's own.
PYTHON = "EXECUTORCH_GOLDENS_CLUSTER_PYTHON"

#: Distribution to install where there is no Dask.
EXTRA = 'pip install "executorch-goldens[cluster]"'

#: Way out where a run's client has none.
WITH_DASK = f"run it with nox, or name a Python in {PYTHON} after {EXTRA}"
