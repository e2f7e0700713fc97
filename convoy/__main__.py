"""`python -m convoy`."""

from convoy.main import main

if __name__ == "__main__":
    main()
