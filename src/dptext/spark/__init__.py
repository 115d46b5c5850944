"""The same releases on Apache Spark: one run, carried out by many machines."""
