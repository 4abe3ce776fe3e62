"""How two artifacts differ: payloads, goldens, releases. Nothing else in the house compares artifacts."""
