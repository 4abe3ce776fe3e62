"""Supply chain of environments: locks, known vulnerabilities, licences; docs/lab/supply-chain.md."""
