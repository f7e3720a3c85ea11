"""How fast fits and predictions are, beside other k-means: ``sktransclust bench``.

Read `cells` (the problems), `peers` (who solves them), `limits` (what the machine can do at best), `measure`
(the clock) and `report` (tables and the chart), in this order.
"""
