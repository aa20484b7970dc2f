"""What healthy jobs print, learned from them, and held against a job."""
