"""How far a number may be from another: plain arithmetic, without torch."""
