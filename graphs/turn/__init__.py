"""One turn of the chat graph: what it reads, what the model is sent, what it writes."""
