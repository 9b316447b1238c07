//! Any bytes, cut anywhere, as frames and as a preamble: no panic, no unbounded buffer, no
//! verdict that depends on the cutting.
#![no_main]

use exoshell_wire::{
    Frame, FrameDecoder, FrameError, HEADER_LEN, MAX_CONTROL, MAX_NOISE, NoiseOverflow, Preamble,
    PreambleScanner,
};
use libfuzzer_sys::fuzz_target;

/// Cuts bytes into chunks whose sizes are taken from `cuts`, in turn.
fn chunks<'a>(cuts: &'a [u8], mut bytes: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut sizes = cuts.iter().map(|size| usize::from(*size).max(1)).cycle();
    std::iter::from_fn(move || {
        let size = sizes.next().unwrap_or(usize::MAX).min(bytes.len());
        let (chunk, rest) = bytes.split_at(size);
        bytes = rest;
        (!chunk.is_empty()).then_some(chunk)
    })
}

fn decode(cuts: &[u8], bytes: &[u8]) -> (Vec<Frame>, Option<FrameError>) {
    let mut decoder = FrameDecoder::default();
    let mut frames = Vec::new();
    for chunk in chunks(cuts, bytes) {
        decoder.extend(chunk);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, Some(error)),
            }
        }
        assert!(decoder.buffer().len() < HEADER_LEN + MAX_CONTROL);
    }
    (frames, None)
}

fn scan(cuts: &[u8], bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>, NoiseOverflow> {
    let mut scanner = PreambleScanner::new(&Preamble::new("n"));
    let mut taken = 0;
    for chunk in chunks(cuts, bytes) {
        taken += chunk.len();
        if let Some(rest) = scanner.push(chunk)? {
            assert!(scanner.noise().len() <= MAX_NOISE);
            return Ok(Some((scanner.noise().to_vec(), taken - rest.len())));
        }
    }
    Ok(None)
}

fuzz_target!(|input: (Vec<u8>, Vec<u8>)| {
    let (cuts, bytes) = input;
    let whole = decode(&[], &bytes);
    assert_eq!(decode(&cuts, &bytes), whole);
    let encoded: Vec<u8> = whole.0.iter().flat_map(Frame::encode).collect();
    assert!(bytes.starts_with(&encoded));
    assert_eq!(scan(&cuts, &bytes), scan(&[], &bytes));
});
