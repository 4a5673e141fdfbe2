"""The public API: pylance's names, which hand over to jobs and operations."""
