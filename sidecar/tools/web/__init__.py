"""Web pages for the model: which addresses may be requested, the request, reading the response, and the cache."""
