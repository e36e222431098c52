"""What a model's tools may do unasked: pure, with no IO and no clock. Knows nothing of who asks the person, or how."""
