"""The search for the best policy that a person could set up by hand."""
