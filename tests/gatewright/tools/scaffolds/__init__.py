"""The files of new kinds and policies."""
