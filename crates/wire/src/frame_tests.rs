use proptest::prelude::*;

use crate::{
    FIN, Frame, FrameDecoder, FrameError, HEADER_LEN, Kind, MAX_CONTROL, MAX_DATA, MAX_NOISE,
    NoiseOverflow, Preamble, PreambleScanner, STREAM_MASK,
};

/// Feeds chunks and takes what is whole after each, as a reader does.
fn decode(chunks: &[&[u8]]) -> Result<Vec<Frame>, FrameError> {
    let mut decoder = FrameDecoder::default();
    let mut frames = Vec::new();
    for chunk in chunks {
        decoder.extend(chunk);
        while let Some(frame) = decoder.next_frame()? {
            frames.push(frame);
        }
    }
    assert!(decoder.is_at_boundary());
    Ok(frames)
}

/// Cuts bytes into pieces of the given sizes, which are repeated as needed.
fn cut<'a>(mut bytes: &'a [u8], sizes: &[usize]) -> Vec<&'a [u8]> {
    let mut chunks = Vec::new();
    for size in sizes.iter().cycle() {
        let (chunk, rest) = bytes.split_at((*size).min(bytes.len()));
        chunks.push(chunk);
        bytes = rest;
        if bytes.is_empty() {
            break;
        }
    }
    chunks
}

fn any_frame() -> impl Strategy<Value = Frame> {
    let body = prop::collection::vec(any::<u8>(), 0..200);
    (any::<u8>(), any::<u8>(), any::<u32>(), body).prop_map(|(kind, flags, channel, body)| {
        Frame::new(Kind::from_byte(kind), flags, channel, body)
    })
}

proptest! {
    #[test]
    fn frames_survive_any_cutting(
        frames in prop::collection::vec(any_frame(), 0..12),
        sizes in prop::collection::vec(1..300_usize, 1..20),
    ) {
        let bytes: Vec<u8> = frames.iter().flat_map(Frame::encode).collect();
        prop_assert_eq!(decode(&cut(&bytes, &sizes)), Ok(frames));
    }

    #[test]
    fn random_bytes_never_panic_and_never_pile_up(
        bytes in prop::collection::vec(any::<u8>(), 0..4000),
        size in 1..64_usize,
    ) {
        let mut decoder = FrameDecoder::default();
        'feeding: for chunk in bytes.chunks(size) {
            decoder.extend(chunk);
            loop {
                match decoder.next_frame() {
                    Ok(Some(frame)) => prop_assert!(frame.body.len() <= MAX_CONTROL),
                    Ok(None) => break,
                    Err(_) => break 'feeding,
                }
            }
            prop_assert!(decoder.buffer().len() < HEADER_LEN + MAX_CONTROL);
        }
    }

    #[test]
    fn every_header_is_judged_by_itself(header in any::<[u8; HEADER_LEN]>()) {
        let mut decoder = FrameDecoder::default();
        decoder.extend(&header);
        let [l0, l1, l2, l3, kind, _, r0, r1, ..] = header;
        let length = u32::from_le_bytes([l0, l1, l2, l3]);
        let cap = if kind == Kind::Data.to_byte() { MAX_DATA } else { MAX_CONTROL };
        let verdict = decoder.next_frame();
        if (r0, r1) != (0, 0) {
            let found = u16::from_le_bytes([r0, r1]);
            prop_assert_eq!(verdict, Err(FrameError::Reserved { found }));
        } else if length as usize > cap {
            prop_assert_eq!(verdict, Err(FrameError::TooLong { kind, length, cap }));
        } else {
            prop_assert_eq!(verdict.unwrap().is_some(), length == 0);
        }
    }

    #[test]
    fn the_preamble_is_found_behind_any_noise_however_it_is_cut(
        noise in prop::collection::vec(
            prop_oneof![
                Just(b"\x01".to_vec()),
                Just(b"\x01EXOSHELL-GUEST ".to_vec()),
                Just(b"\x01EXOSHELL-GUEST abd\n".to_vec()),
                Just(b"\x01EXO\x01EXOSHELL-GUEST ab".to_vec()),
                // Without `c`, so that noise never completes the preamble by chance.
                prop::collection::vec(any::<u8>().prop_filter("c", |b| *b != b'c'), 0..40),
            ],
            0..8,
        ),
        rest in prop::collection::vec(any::<u8>(), 0..40),
        sizes in prop::collection::vec(1..30_usize, 1..20),
    ) {
        let noise = noise.concat();
        let preamble = Preamble::new("abc");
        let bytes = [noise.clone(), preamble.encode(), rest.clone()].concat();
        let mut scanner = PreambleScanner::new(&preamble);
        let mut chunks = cut(&bytes, &sizes).into_iter();
        let mut left = loop {
            let chunk = chunks.next().expect("the preamble was not found");
            if let Some(left) = scanner.push(chunk).unwrap() {
                break left;
            }
        };
        left.extend(chunks.flatten());
        prop_assert_eq!(scanner.noise(), noise);
        prop_assert_eq!(left, rest);
    }
}

#[test]
fn frames_survive_a_cut_at_every_byte() {
    let frames = vec![
        Frame::new(Kind::Request, 0, 1, &b"{\"ask\":\"info\"}"[..]),
        Frame::new(Kind::Data, 1 | FIN, 1, &b""[..]),
        Frame::new(Kind::Data, 2, u32::MAX, &b"some bytes"[..]),
        Frame::new(Kind::Ping, 0, 0, &b""[..]),
    ];
    let bytes: Vec<u8> = frames.iter().flat_map(Frame::encode).collect();
    for at in 0..=bytes.len() {
        let (head, tail) = bytes.split_at(at);
        assert_eq!(decode(&[head, tail]).unwrap(), frames, "cut at {at}");
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(decode(&single).unwrap(), frames);
}

#[test]
fn the_largest_bodies_pass_and_one_byte_more_is_refused_before_any_of_it_came() {
    for (kind, cap) in [(Kind::Data, MAX_DATA), (Kind::Reply, MAX_CONTROL)] {
        let largest = Frame::new(kind, 0, 1, vec![7; cap]);
        assert_eq!(decode(&[&largest.encode()]).unwrap(), [largest]);

        let mut decoder = FrameDecoder::default();
        decoder.extend(&Frame::new(kind, 0, 1, vec![7; cap + 1]).header());
        let error = FrameError::TooLong {
            kind: kind.to_byte(),
            length: u32::try_from(cap + 1).unwrap(),
            cap,
        };
        assert_eq!(decoder.next_frame(), Err(error));
    }
}

#[test]
fn an_announced_body_reserves_nothing() {
    let mut decoder = FrameDecoder::default();
    let header = Frame::new(Kind::Event, 0, 1, vec![0; MAX_CONTROL]).header();
    decoder.extend(&header);
    assert_eq!(decoder.next_frame(), Ok(None));
    assert!(decoder.buffer().capacity() < 1024);
    assert!(!decoder.is_at_boundary());
}

#[test]
fn kinds_of_the_future_pass_through() {
    for byte in 0..=u8::MAX {
        let frame = Frame::new(Kind::from_byte(byte), 0, 3, &b"later"[..]);
        assert_eq!(frame.kind.to_byte(), byte);
        assert_eq!(decode(&[&frame.encode()]).unwrap(), [frame]);
    }
    assert_eq!(Kind::from_byte(11), Kind::Unknown(11));
}

#[test]
fn a_stream_and_its_end_share_the_flags() {
    for stream in 0..=STREAM_MASK {
        assert_eq!((stream | FIN) & STREAM_MASK, stream);
        assert_eq!(stream & FIN, 0);
    }
}

/// Pushes noise and a preamble in chunks of one size.
fn scan(noise: usize, size: usize) -> Result<Option<Vec<u8>>, NoiseOverflow> {
    let preamble = Preamble::new("0123456789abcdef");
    let bytes = [vec![b'.'; noise], preamble.encode()].concat();
    let mut scanner = PreambleScanner::new(&preamble);
    for chunk in bytes.chunks(size) {
        if let Some(rest) = scanner.push(chunk)? {
            assert_eq!(scanner.noise().len(), noise);
            return Ok(Some(rest));
        }
    }
    Ok(None)
}

#[test]
fn the_noise_has_a_limit_that_does_not_depend_on_the_cutting() {
    for size in [1, 7, 4096, MAX_NOISE, MAX_NOISE * 4] {
        assert_eq!(scan(MAX_NOISE, size), Ok(Some(Vec::new())), "by {size}");
        assert_eq!(scan(MAX_NOISE + 1, size), Err(NoiseOverflow), "by {size}");
    }
}

#[test]
fn too_much_noise_is_quoted_but_not_kept_whole_and_stays_an_error() {
    let preamble = Preamble::new("abc");
    let mut scanner = PreambleScanner::new(&preamble);
    assert_eq!(scanner.push(&vec![b'x'; 1 << 20]), Err(NoiseOverflow));
    assert!(scanner.noise().len() <= MAX_NOISE + preamble.encode().len());
    assert_eq!(scanner.push(&preamble.encode()), Err(NoiseOverflow));
}

#[test]
fn the_preamble_of_another_host_is_noise() {
    let mut scanner = PreambleScanner::new(&Preamble::new("mine"));
    let other = Preamble::new("other").encode();
    assert_eq!(scanner.push(&other), Ok(None));
    assert_eq!(scanner.noise(), other);
}
