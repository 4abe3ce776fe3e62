"""Supply chain of environments: locks, known vulnerabilities, licences; harness/lab/docs/supply-chain.md."""
