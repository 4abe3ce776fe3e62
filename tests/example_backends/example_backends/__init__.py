"""Two backends of ExecuTorch's wheel that the harness does not know: Vulkan and Cortex-M."""
