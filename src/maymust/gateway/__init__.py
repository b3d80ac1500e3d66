"""The pass in front of any client: an HTTP gateway that rewrites requests, and checks what comes back (extra `gateway`)."""
