"""What `headgate migrate` finds, and how it is told."""
