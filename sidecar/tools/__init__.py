"""The tools of the model: one file per tool, with the description that the model sees next to the code."""
