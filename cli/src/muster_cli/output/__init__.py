"""What commands write: tables and colours for people; JSON, YAML, CSV and names for programs."""
