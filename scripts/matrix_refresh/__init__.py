"""Makes ``matrices/packages/*.json`` and ``matrices/index.json`` from the metadata of a package
index.

=================
=========================================================================================
``selection``      which packages, and which dependencies touch the stack (``packages.toml``)
``transport``      HTTP: bounded bodies, ranges, retries with backoff ``index``          the page of
one project → its files ``zip_range``      a zip archive on a server → its directory, by range
requests ``archives``       wheel or source archive → the bytes of its metadata, without downloading
or running it ``metadata``       bytes of METADATA or PKG-INFO → name, version and requirements, or
why they are refused ``store``          what was read, by the hash of the file: makes a run
resumable and a second one cheap ``releases``       files and their metadata → releases as the
matrix holds them ``documents``      package files and the index listing: merge with what is there,
write atomically ``run``            joins them; ``scripts/refresh_matrix`` is its command
=================
=========================================================================================
"""
