"""Reads what is inside binary wheels and writes it to the ``builds`` of
``matrices/packages/*.json``.

=================
=========================================================================================
``zip_range``      a wheel on a server → its directory, and members as inflated streams, by range
requests ``fatbin``         a stream → its CUDA fat binaries: machine code, PTX and the version of
the PTX ``members``        which members of which package's wheels are read, and how
``record``         a wheel → what was found in it, member by member, kept by the hash of the wheel
``builds``         a record → a ``Build`` of the matrix; merging it into the package files
``run``            joins them; ``scripts/scan_wheels`` is its command
=================
=========================================================================================

HTTP, the page of a project and atomic writing are ``matrix_refresh``'s.
"""
