"""What pods and nodes used over time: kept in the database, thinned as it ages, read as frames."""
