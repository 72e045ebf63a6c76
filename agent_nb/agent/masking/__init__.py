"""What two results may differ in and still be the same: times, durations, folders, addresses."""
