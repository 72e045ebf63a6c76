"""Where model turns come from: each file is one provider; see `base`.

`http` is the shared HTTP edge, `choose` resolves `provider/name`.
"""
