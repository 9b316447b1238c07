//! The tar archives we write: a folder with a program in it, and empty folders.

use bytes::{Bytes, BytesMut};

/// The unit of the format.
const BLOCK: usize = 512;

/// Packs a program as `.exoshell/<name>`, executable for everybody.
pub(crate) fn pack(name: &str, program: &[u8]) -> Bytes {
    pack_with(Some((name, program)), &[])
}

/// Packs a program, if any, and folders that everybody may write to.
pub(crate) fn pack_with(program: Option<(&str, &[u8])>, folders: &[&str]) -> Bytes {
    let mut archive = BytesMut::new();
    archive.extend_from_slice(&header(".exoshell/", b'5', "0000755", 0));
    if let Some((name, program)) = program {
        let name = format!(".exoshell/{name}");
        archive.reserve(program.len() + 8 * BLOCK);
        archive.extend_from_slice(&header(&name, b'0', "0000755", program.len()));
        archive.extend_from_slice(program);
        let padding = program.len().next_multiple_of(BLOCK) - program.len();
        archive.resize(archive.len() + padding, 0);
    }
    for folder in folders {
        let name = format!("{}/", folder.trim_matches('/'));
        archive.extend_from_slice(&header(&name, b'5', "0001777", 0));
    }
    // Two empty blocks are the end.
    archive.resize(archive.len() + 2 * BLOCK, 0);
    archive.freeze()
}

/// Writes the header of one entry, owned by root.
fn header(name: &str, kind: u8, mode: &str, size: usize) -> [u8; BLOCK] {
    let mut header = [0_u8; BLOCK];
    let mut put = |at: usize, text: &[u8]| {
        for (slot, byte) in header.iter_mut().skip(at).zip(text) {
            *slot = *byte;
        }
    };
    put(0, name.get(..99).unwrap_or(name).as_bytes());
    put(100, mode.as_bytes());
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
