"""What a log line says: shape, iteration, timers, phase, trouble, exits, layout. Pure functions of the line."""
