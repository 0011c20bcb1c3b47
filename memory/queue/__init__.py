"""When pending updates are read: after a quiet time, at the latest after the maximum wait."""
