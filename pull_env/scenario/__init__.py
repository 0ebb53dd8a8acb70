"""Systems as data: pools, routers, arrivals, service, faults, prices; and how they are checked."""
