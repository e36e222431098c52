"""What a user or an app does to a chat besides prompting."""
