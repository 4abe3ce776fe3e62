"""Which code of a toolchain runs while a cell is lowered, and which cells an edit of that code asks for."""
