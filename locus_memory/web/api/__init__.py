"""The JSON API: the table of the endpoints, their routes, and the OpenAPI document.

One table names the method, the path and the function of each endpoint. The models of the function
are its parameters, its body and its answer, so that the table is all that the document needs.

Read `table.py` first, then `operation.py`.
"""
