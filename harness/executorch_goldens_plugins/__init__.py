"""The plugins of this distribution: one package each, which imports the core and no other (docs/plugins/README.md)."""
