"""The attention core: assign and update without the n x k matrix.

Read `frame` (coordinates), `samples` (what the core asks of data, tile by tile; then `dense_samples`
and `csr_samples`), `nearest` (assign), `partial` (update) and `streamed` (both, over all samples),
in this order; `threads` runs chunks side by side. `compiled` does the same for dense samples on a CPU, by
the kernels of kernel.cpp, which `library` loads.
"""
