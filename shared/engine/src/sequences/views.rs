//! What the API shows: sequences, open triggers, events.
