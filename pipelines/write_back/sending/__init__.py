"""From the outbox to the service, each effect once: order, pace, lost answers. Not here: reading back what was taken (`verifying`)."""
