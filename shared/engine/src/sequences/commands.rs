//! What people tell the engine.
