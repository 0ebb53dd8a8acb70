"""Chen, Ye 2012: balanced routing in heavy traffic."""
