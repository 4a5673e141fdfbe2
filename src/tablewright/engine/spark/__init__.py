"""The only home of pyspark: sessions, tasks and DataFrames."""
