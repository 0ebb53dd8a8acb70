"""The page of trained routers."""
