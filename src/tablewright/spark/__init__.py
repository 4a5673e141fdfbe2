"""What users of Spark see: the data source ``tablewright``, streams, and tables by delta-spark's names."""
