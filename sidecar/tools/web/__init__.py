"""Pages of the web for the model: which addresses may be asked, asking them, reading what they answer, keeping it."""
