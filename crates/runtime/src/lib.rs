//! Tasks, sessions, places' lives and tools: the Rust API
