//! Projects and shipyards, as they are applied.
