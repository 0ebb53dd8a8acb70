"""The named policies, one family a file, and the policies tuned for the presets."""
