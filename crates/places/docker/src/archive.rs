//! The one tar archive we ever write: a folder and a program in it.

use bytes::{Bytes, BytesMut};

/// The unit of the format.
const BLOCK: usize = 512;

/// Packs a program as `.exoshell/<name>`, executable for everybody.
pub(crate) fn pack(name: &str, program: &[u8]) -> Bytes {
    let mut archive = BytesMut::with_capacity(program.len() + 8 * BLOCK);
    archive.extend_from_slice(&header(".exoshell/", b'5', 0));
    archive.extend_from_slice(&header(&format!(".exoshell/{name}"), b'0', program.len()));
    archive.extend_from_slice(program);
    let padding = program.len().next_multiple_of(BLOCK) - program.len();
    // Two empty blocks are the end.
    archive.resize(archive.len() + padding + 2 * BLOCK, 0);
    archive.freeze()
}

/// Writes the header of one entry, owned by root and with mode 0755.
fn header(name: &str, kind: u8, size: usize) -> [u8; BLOCK] {
    let mut header = [0_u8; BLOCK];
    let mut put = |at: usize, text: &[u8]| {
        for (slot, byte) in header.iter_mut().skip(at).zip(text) {
            *slot = *byte;
        }
    };
    put(0, name.get(..99).unwrap_or(name).as_bytes());
    put(100, b"0000755\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{size:011o}\0").as_bytes());
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    let sum = format!("{sum:06o}\0 ");
    for (slot, byte) in header.iter_mut().skip(148).zip(sum.as_bytes()) {
        *slot = *byte;
    }
    header
}

#[cfg(test)]
#[path = "archive_tests.rs"]
mod tests;
