"""What a router does for the customer at hand, and what it remembers."""
