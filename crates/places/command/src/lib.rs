//! The command backend.
