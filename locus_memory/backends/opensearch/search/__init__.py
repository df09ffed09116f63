"""Search in OpenSearch: filters as terms of one field, texts by BM25, vectors by k-NN.

`tokens.py` turns a document into the terms of the field for filters, and `filters.py` compiles a
filter into a query over them. `texts.py` ranks by words, `vectors.py` by direction.
"""
