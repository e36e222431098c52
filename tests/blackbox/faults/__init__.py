"""Bad disks: system calls that fail or kill, file systems without room, files full of garbage."""
