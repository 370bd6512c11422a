"""What did a device really do? Profiles: recorded, read, kept, shown, and held to the schedule."""
