"""All that speaks to a broker; knows nothing of Connect."""
