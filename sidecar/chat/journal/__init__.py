"""Events on their way to the store, and the ids in them."""
