"""Dates of Java: text by the patterns of SimpleDateFormat, and the calendar behind it."""
