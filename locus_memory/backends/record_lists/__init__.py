"""What databases share that have no more than documents under names, OpenSearch and OCI.

Read `rows.py` first, then `storage.py`.
"""
