//! Caps that hold before anything is allocated.

/// The largest body of a data frame. Small enough that channels take turns quickly, large
/// enough that the 12-byte header does not matter.
pub const MAX_DATA: usize = 32 * 1024;

/// The largest body of a control frame. Command text, stdin and file bodies travel as data,
/// so only an unusually large environment comes near it.
pub const MAX_CONTROL: usize = 1024 * 1024;

/// The credit each side of a channel starts with. Throughput is window / round trip, so bulk
/// readers raise it.
pub const INITIAL_WINDOW: u32 = 256 * 1024;

/// How much noise (login banners, profile output) may precede the preamble on a pipe.
pub const MAX_NOISE: usize = 64 * 1024;
