"""What Oncebox's sender stores and says: rows, states, outcomes and values. A leaf: imports nothing of ours."""
