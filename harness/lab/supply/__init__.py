"""What environments are made of: locks, known vulnerabilities, licences; docs/supply-chain.md."""
