"""Who is asking, what they may do, and what is written down about it. No HTTP here."""
