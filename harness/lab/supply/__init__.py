"""Supply chain of environments: locks, known vulnerabilities; harness/lab/docs/supply-chain.md."""
