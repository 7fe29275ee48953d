"""Deterministic equivalents: arrays in, arrays out."""
