"""Versioned Zarr arrays in one SQLite file."""
