//! Spawning, supervising and killing process trees
