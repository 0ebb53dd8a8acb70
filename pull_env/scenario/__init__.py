"""Systems as data: pools, arrivals, service, faults and prices, with their checks."""
