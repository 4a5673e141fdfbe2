"""What a merge writes: rows that move, columns in place, new rows, deletion files."""
