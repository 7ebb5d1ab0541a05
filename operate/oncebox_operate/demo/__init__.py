"""`oncebox demo`: an agent saves research notes while everything around it breaks; a count by SQL tells the end."""
