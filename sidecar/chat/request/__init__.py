"""The request to the model: collects candidates, fits them into the context window, builds the messages."""
