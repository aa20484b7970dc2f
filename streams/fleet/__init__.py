"""What the jobs of a cluster have in common: which of their incidents are one failure, and how often nodes fail."""
