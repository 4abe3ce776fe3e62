"""The products of an example firm: its models, and how it makes programs from them."""
