"""How every command speaks: options they share, tables and JSON on stdout, errors and progress on stderr."""
