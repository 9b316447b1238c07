//! Frames, hello, messages and limits of the pipe between host and guest
