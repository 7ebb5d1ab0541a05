"""The chaos run: steady work from several processes while every party is killed, paused, cut off and slowed."""
