//! Frames: a fixed header and a body.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

use crate::limits::{MAX_CONTROL, MAX_DATA};

/// Bytes in a frame header: length (4), kind (1), flags (1), reserved (2), channel (4).
pub const HEADER_LEN: usize = 12;

/// The part of a data frame's flags that names the stream.
pub const STREAM_MASK: u8 = 0x0f;

/// The flag of a data frame that says: nothing follows on this stream.
pub const FIN: u8 = 0x80;

/// What a frame carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Opens the conversation, JSON, channel 0.
    Hello,
    /// Opens a channel, JSON.
    Request,
    /// Tells something on an open channel, JSON.
    Event,
    /// Answers the request and ends the answering half of the channel, JSON.
    Reply,
    /// Carries raw bytes of one stream; the flags name the stream.
    Data,
    /// Grants the peer more bytes to send on a channel, `u32` little endian.
    Credit,
    /// Asks the answering side to stop working on a channel; it still replies.
    Cancel,
    /// Tells the asking side that no reply will come.
    Reset,
    /// Asks for a sign of life; the body comes back in a pong.
    Ping,
    /// Answers a ping.
    Pong,
    /// A kind this build does not know; it is skipped.
    Unknown(u8),
}

impl Kind {
    /// Returns the byte that stands for this kind in a header.
    pub const fn to_byte(self) -> u8 {
        match self {
            Self::Hello => 1,
            Self::Request => 2,
            Self::Event => 3,
            Self::Reply => 4,
            Self::Data => 5,
            Self::Credit => 6,
            Self::Cancel => 7,
            Self::Reset => 8,
            Self::Ping => 9,
            Self::Pong => 10,
            Self::Unknown(byte) => byte,
        }
    }

    /// Returns the kind a header byte stands for.
    pub const fn from_byte(byte: u8) -> Self {
        match byte {
            1 => Self::Hello,
            2 => Self::Request,
            3 => Self::Event,
            4 => Self::Reply,
            5 => Self::Data,
            6 => Self::Credit,
            7 => Self::Cancel,
            8 => Self::Reset,
            9 => Self::Ping,
            10 => Self::Pong,
            other => Self::Unknown(other),
        }
    }

    const fn max_body(self) -> usize {
        match self {
            Self::Data => MAX_DATA,
            _ => MAX_CONTROL,
        }
    }
}

/// One unit on the pipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// What the frame carries.
    pub kind: Kind,
    /// Kind-specific bits; for data the stream and [`FIN`].
    pub flags: u8,
    /// The channel it belongs to; 0 is the connection itself.
    pub channel: u32,
    /// The body, at most [`MAX_DATA`] or [`MAX_CONTROL`] bytes.
    pub body: Bytes,
}

impl Frame {
    /// Builds a frame.
    pub fn new(kind: Kind, flags: u8, channel: u32, body: impl Into<Bytes>) -> Self {
        Self {
            kind,
            flags,
            channel,
            body: body.into(),
        }
    }

    /// Returns the header bytes, with the body's length filled in.
    pub fn header(&self) -> [u8; HEADER_LEN] {
        // Bodies are capped far below 4 GiB; a larger one is refused by the receiver.
        let length = u32::try_from(self.body.len()).unwrap_or(u32::MAX);
        let [l0, l1, l2, l3] = length.to_le_bytes();
        let [c0, c1, c2, c3] = self.channel.to_le_bytes();
        let kind = self.kind.to_byte();
        [l0, l1, l2, l3, kind, self.flags, 0, 0, c0, c1, c2, c3]
    }

    /// Returns header and body in one buffer.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(HEADER_LEN + self.body.len());
        out.put_slice(&self.header());
        out.put_slice(&self.body);
        out.freeze()
    }
}

/// Why bytes are not frames.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The header announces a body over the cap of its kind.
    #[error("a frame of kind {kind} announces {length} bytes, the cap is {cap}")]
    TooLong {
        /// The kind byte.
        kind: u8,
        /// The announced length.
        length: u32,
        /// The cap of that kind.
        cap: usize,
    },
    /// The reserved header bytes are not zero, so the stream is out of step.
    #[error("reserved header bytes are {found:#06x}, not zero: the stream is out of step")]
    Reserved {
        /// What stood there.
        found: u16,
    },
}

/// Turns a byte stream, cut anywhere, into frames.
///
/// A header is judged before a byte of its body is buffered, so a hostile peer can make the
/// decoder hold at most one capped body.
#[derive(Debug, Default)]
pub struct FrameDecoder {
    buffer: BytesMut,
}

impl FrameDecoder {
    /// Adds received bytes.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the buffer to read into, so that no copy is needed.
    pub const fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Takes the next whole frame, or `None` when more bytes are needed.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let Some(header) = self.buffer.first_chunk::<HEADER_LEN>() else {
            return Ok(None);
        };
        let [l0, l1, l2, l3, kind, flags, r0, r1, c0, c1, c2, c3] = *header;
        let length = u32::from_le_bytes([l0, l1, l2, l3]);
        let reserved = u16::from_le_bytes([r0, r1]);
        if reserved != 0 {
            return Err(FrameError::Reserved { found: reserved });
        }
        let kind = Kind::from_byte(kind);
        let body_len = usize::try_from(length).unwrap_or(usize::MAX);
        if body_len > kind.max_body() {
            return Err(FrameError::TooLong {
                kind: kind.to_byte(),
                length,
                cap: kind.max_body(),
            });
        }
        if self.buffer.len() < HEADER_LEN + body_len {
            return Ok(None);
        }
        self.buffer.advance(HEADER_LEN);
        let body = self.buffer.split_to(body_len).freeze();
        Ok(Some(Frame {
            kind,
            flags,
            channel: u32::from_le_bytes([c0, c1, c2, c3]),
            body,
        }))
    }

    /// Tells whether the stream ends between two frames, which is a clean end.
    pub fn is_at_boundary(&self) -> bool {
        self.buffer.is_empty()
    }
}
