"""The general router, for systems that it was not trained on."""
