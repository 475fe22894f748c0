"""Tests of scripts/surface_scan."""
