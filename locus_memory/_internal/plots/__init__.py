"""Charts as SVG, without a library for plots.

`draw_lines` draws lines over two scaled axes, with a title, a subtitle, ticks and a legend. A
picture brings its own ground, for light and for dark, and its description for screen readers.

Read `lines.py` first, then `scales.py` and `picture.py`.
"""
