use proptest::prelude::*;

use super::*;

/// What a host collects.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Heard {
    order: Vec<(u8, u8)>,
}

impl Heard {
    fn take(&mut self, stream: u8, bytes: &[u8]) {
        self.order.extend(bytes.iter().map(|byte| (stream, *byte)));
    }

    fn offsets(&self) -> Offsets {
        let count = |wanted| self.order.iter().filter(|(s, _)| *s == wanted).count() as u64;
        [count(stream::STDOUT), count(stream::STDERR)]
    }
}

#[test]
fn what_is_told_comes_in_the_order_written() {
    let mut log = Log::default();
    log.push(1, b"ab");
    log.push(2, b"c");
    log.push(1, b"d");
    log.push(1, b"e");
    assert_eq!(log.peek(1).unwrap().1, "a");
    log.advance(1);
    let rest: Vec<_> = log.rest(100);
    let expected: [(u8, &[u8]); 3] = [(1, b"b"), (2, b"c"), (1, b"de")];
    assert_eq!(rest.len(), expected.len());
    for ((number, bytes), (stream, text)) in rest.iter().zip(expected) {
        assert_eq!((*number, &bytes[..]), (stream, text));
    }
    assert_eq!((log.peek(9), log.cursor.byte, log.len()), (None, 5, 5));
}

#[test]
fn only_what_was_told_is_forgotten() {
    let mut log = Log::default();
    log.push(1, b"abcd");
    log.push(2, b"ef");
    log.advance(3);
    log.forget(1);
    assert_eq!((log.len(), log.cursor.byte), (4, 1));
    assert_eq!(log.rewind([1, 0]), Err(Gap::Forgotten));
    assert_eq!(log.rewind([5, 0]), Err(Gap::Ahead));
    assert_eq!(log.rewind([2, 0]), Ok(()));
    assert_eq!(log.peek(9).unwrap().1, "cd");
}

#[test]
fn streams_may_be_wanted_from_unrelated_offsets() {
    let mut log = Log::default();
    log.push(1, b"abc");
    log.push(2, b"xyz");
    log.push(1, b"def");
    log.rewind([4, 1]).unwrap();
    let rest = log.rest(100);
    assert_eq!(rest, [(2, Bytes::from("yz")), (1, Bytes::from("ef"))]);
}

proptest! {
    #[test]
    fn a_host_that_comes_back_misses_nothing(
        steps in prop::collection::vec((1_u8..=2, 0_usize..40, 0_usize..60, 0_u8..6), 1..60),
    ) {
        const KEEP: usize = 64;
        let mut log = Log::default();
        let mut written = Heard::default();
        let mut heard = Heard::default();
        let mut next = 0_u8;
        // What a host said to have it never loses.
        let mut certain = 0;
        for (number, length, told, event) in steps {
            let bytes: Vec<u8> = (0..length).map(|_| { next = next.wrapping_add(1); next }).collect();
            log.push(number, &bytes);
            written.take(number, &bytes);
            if let Some((number, bytes)) = log.peek(told.max(1)) {
                log.advance(bytes.len());
                heard.take(number, &bytes);
            }
            log.forget(KEEP);
            if event == 0 {
                // Up to what is kept may have been on its way when the pipe was cut.
                let lost = KEEP.min(heard.order.len() - certain).min(told);
                certain = heard.order.len() - lost;
                heard.order.truncate(certain);
                log.rewind(heard.offsets()).unwrap();
            }
        }
        for (number, bytes) in log.rest(7) {
            heard.take(number, &bytes);
        }
        prop_assert_eq!(heard, written);
    }
}
