"""Mutation testing by one build: every mutant of the pure cores behind a switch that is read when a test starts (docs/decisions/0069)."""
