"""The headline of each of four papers, reproduced: rows, a figure and a page made from the rows."""
