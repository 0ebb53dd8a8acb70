"""What only systems with faults or slow messages do."""
