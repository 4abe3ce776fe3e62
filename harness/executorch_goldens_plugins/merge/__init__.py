"""Results of shards as those of one run, and summaries of results: ``goldens merge``."""
