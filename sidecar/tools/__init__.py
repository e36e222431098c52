"""What the model can do: a file a tool, with what the model is told of it beside it."""
