"""What `eval` does with a model: it asks questions, and reports what the answers are worth.

`questions.py` asks and judges. `report.py` prints and writes the report, for which `charts.py`
draws two plots.
"""
