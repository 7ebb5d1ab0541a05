"""What `oncebox doctor` looks at, one module a party. Every check is a line; none changes anything."""
