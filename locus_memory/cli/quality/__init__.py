"""The report of runs of questions, on a terminal, in a file and on a page.

`charts.py` draws its two plots, `report.py` prints and writes it.
"""
