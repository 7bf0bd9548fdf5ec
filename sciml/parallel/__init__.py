"""Layouts over devices, and the one step builder that follows them."""
