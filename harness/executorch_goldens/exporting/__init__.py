"""Code of exporting processes: with patches, the only modules that import torch and ExecuTorch."""
