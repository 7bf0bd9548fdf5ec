"""Finite volumes for conservation laws: averages over cells, changed by what passes through their faces."""
