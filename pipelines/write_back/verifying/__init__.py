"""Reading back what the service took, and comparing it with what was intended."""
