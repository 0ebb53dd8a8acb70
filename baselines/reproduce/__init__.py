"""The main result of each of four papers: rows, and a page and figure from them."""
