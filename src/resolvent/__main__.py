"""`python -m resolvent`."""

from resolvent.cli import main

if __name__ == "__main__":
    main()
