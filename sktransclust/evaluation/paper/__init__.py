"""The paper's figures and tables, each from one call.

Read in this order: ``profiles`` (how large), ``settings`` (which models), ``store`` (trained once, kept on
disk), then what is measured with them: ``curves``, ``multistep``, ``surfaces``, ``costs``, ``dissimilarity``,
``stability``; ``experiments`` (the registry), ``reproduce`` (the runner); ``drawing`` (table in, figure out)
and ``claims`` (table in, verdict out).
"""
