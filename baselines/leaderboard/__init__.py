"""The leaderboard: runs, rows, tables and figures."""
