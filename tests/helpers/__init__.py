"""What several test files share: nothing in here is a test."""
