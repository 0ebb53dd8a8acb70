"""The general router, for systems it has never seen."""
