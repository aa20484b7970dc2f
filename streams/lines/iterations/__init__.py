"""One reader for each way in which frameworks print iterations, and the numbers that they give."""
