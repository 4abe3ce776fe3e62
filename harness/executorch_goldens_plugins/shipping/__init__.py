"""A program that is about to ship: whether it is a golden's, how it was built, and which kernels it needs."""
