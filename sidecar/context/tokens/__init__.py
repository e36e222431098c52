"""How many tokens a text has for a model, without the network."""
