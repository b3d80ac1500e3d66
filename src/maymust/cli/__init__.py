"""The command `maymust`. Each subcommand is a module with `add_parser`; nothing here is needed to use the library."""
