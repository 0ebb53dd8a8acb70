"""Running a scenario under a policy, and the estimates with intervals that come out."""
