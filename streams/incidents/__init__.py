"""From anomalies to incidents: what belongs together, whom the evidence supports, and what to say."""
