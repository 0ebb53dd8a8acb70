"""Running a scenario under a policy, and estimating its measures."""
