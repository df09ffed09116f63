"""The files of models that run on this machine: which there are, how they arrive, how they run.

A model comes from a folder or from a package that pip installs. Running one needs ONNX; looking up
static vectors needs numpy alone.

Read `catalogue.py` first, then `files.py` and `transformer.py`.
"""
