"""What environments are made of: locks, known vulnerabilities, licences; docs/lab/supply-chain.md."""
