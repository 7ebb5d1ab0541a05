"""What nobody may do and nothing may tell: each line of the security promise, shown over real HTTP and real processes."""
