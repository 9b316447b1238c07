//! Channels with credit over any byte pipe
