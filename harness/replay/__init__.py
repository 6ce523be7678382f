"""A recorded failure run again, judged again, opened in a shell."""
