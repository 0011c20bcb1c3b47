"""What goes: by hand and for good, with a thread, or with time; and which epochs keep it from coming back."""
