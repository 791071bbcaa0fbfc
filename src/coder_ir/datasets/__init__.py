"""Files to documents, queries and judgements; one loader a file."""
