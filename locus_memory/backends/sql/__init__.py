"""What the backends of SQL servers share, PostgreSQL and Oracle.

Each of them has its own driver, statements and types, and fills in a few methods here. Nothing in
this folder imports a driver.

Read `pool.py` first, then `database.py`.
"""
