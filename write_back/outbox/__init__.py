"""The durable queue of everything that is to be sent, is being sent or was sent. Nothing is sent
here."""
