"""`python -m coder_ir` is the command line."""

from coder_ir.cli import main

main()
