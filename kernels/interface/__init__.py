"""What both engines share: their calls, and the data that they take and give."""
