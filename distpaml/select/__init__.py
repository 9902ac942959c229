"""Which task next: candidates, the utility they are ranked by, and the methods made of both."""
