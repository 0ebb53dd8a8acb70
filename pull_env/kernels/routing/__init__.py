"""What a router does for the current customer, and what it remembers."""
