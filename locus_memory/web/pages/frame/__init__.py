"""What all pages share: a visit, forms, templates, the login, static files and the error page.

`visit.py` has the functions that make routes; a form reaches no page before its token is checked
there. `rendering.py` fills templates, in which everything is escaped.

Read `visit.py` first, then `rendering.py` and `failures.py`.
"""
