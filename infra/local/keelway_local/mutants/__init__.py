"""Mutation testing by one build: every mutant of the pure cores is behind a switch (docs/decisions/0069)."""
