"""The matrix of options as a zoo: each row of its arrays is a case that makes its program by itself."""

from lab.options.cases import register

register(__name__)
