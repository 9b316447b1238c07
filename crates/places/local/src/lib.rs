//! The local backend
