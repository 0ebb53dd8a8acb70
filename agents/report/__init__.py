"""The page on trained routers, agents/README.md."""
