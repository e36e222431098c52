"""What differs by operating system, one small module each."""
