//! A length-prefixed encoding for messages between processes of the same binary.

/// Writes values.
#[derive(Debug, Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn number(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn bytes(&mut self, value: &[u8]) {
        self.number(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    pub(crate) fn list(&mut self, values: &[Vec<u8>]) {
        self.number(values.len() as u64);
        for value in values {
            self.bytes(value);
        }
    }
}

/// Reads values in the order they were written; `None` where the message is short.
#[derive(Debug)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl Reader<'_> {
    pub(crate) fn number(&mut self) -> Option<u64> {
        let (head, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*head))
    }

    pub(crate) fn small(&mut self) -> Option<i32> {
        // Written as the two's complement of an i64, so negative numbers survive.
        i32::try_from(self.number()?.cast_signed()).ok()
    }

    pub(crate) fn bytes(&mut self) -> Option<Vec<u8>> {
        let length = usize::try_from(self.number()?).ok()?;
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(head.to_vec())
    }

    pub(crate) fn list(&mut self) -> Option<Vec<Vec<u8>>> {
        (0..self.number()?).map(|_| self.bytes()).collect()
    }
}
