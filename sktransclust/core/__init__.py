"""The attention core: assign and update without the n x k matrix.

Read `frame` (coordinates), `samples` (data, tile by tile), `nearest` (assign), `partial` (update)
and `streamed` (both, over all samples), in this order; `threads` runs chunks side by side.
"""
