//! The program inside every place
