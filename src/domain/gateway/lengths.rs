//! How long a client says its frames are (RFC 6455 §5.2), looked at as soon as it says so: whoever waits for the whole
//! of a frame first keeps as much of it as the client likes.

/// Longest head of a frame: two bytes, eight of a length, four of a mask.
const MOST_HEAD: usize = 14;

/// Follows the bytes of one connection.
#[derive(Debug)]
pub struct Lengths {
    most: u64,
    head: [u8; MOST_HEAD],
    /// Bytes of the head that were read.
    read: usize,
    /// Bytes of the present frame that are still to come.
    left: u64,
}

/// A frame is to be longer than may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

impl Lengths {
    /// For frames of at most so many bytes without their heads.
    pub fn new(most: u64) -> Self {
        Self { most, head: [0; MOST_HEAD], read: 0, left: 0 }
    }

    /// Looks at the next bytes.
    ///
    /// # Errors
    /// When a frame begins in them that is to be too long.
    pub fn look(&mut self, mut bytes: &[u8]) -> Result<(), TooLong> {
        loop {
            let inside = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
            self.left -= inside as u64;
            let Some((byte, rest)) = bytes[inside..].split_first() else { return Ok(()) };
            bytes = rest;
            self.head[self.read] = *byte;
            self.read += 1;
            if let Some(length) = self.length() {
                if length > self.most {
                    return Err(TooLong);
                }
                (self.left, self.read) = (length, 0);
            }
        }
    }

    /// The frame's length, when its head is whole.
    fn length(&self) -> Option<u64> {
        if self.read < 2 {
            return None;
        }
        let (short, mask) = (self.head[1] & 0x7f, usize::from(self.head[1] >> 7) * 4);
        let extended = match short {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        if self.read < 2 + extended + mask {
            return None;
        }
        let long = self.head[2..2 + extended].iter().fold(0, |length, byte| length << 8 | u64::from(*byte));
        Some(if extended == 0 { u64::from(short) } else { long })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A frame of a client; `form` is how its length is written.
    fn frame(length: u64, form: u8, masked: bool) -> Vec<u8> {
        let (short, long) = match form {
            0 if length < 126 => (length as u8, vec![]),
            0 | 1 if length <= 0xffff => (126, (length as u16).to_be_bytes().to_vec()),
            _ => (127, length.to_be_bytes().to_vec()),
        };
        let mut frame = vec![0x81, short | if masked { 0x80 } else { 0 }];
        frame.extend(long);
        frame.extend(vec![7; if masked { 4 } else { 0 }]);
        frame
    }

    #[test]
    fn a_frame_that_is_to_be_too_long_is_found_by_its_head() {
        for (length, form) in [(101, 0), (126, 0), (70_000, 1), (1 << 40, 2), (u64::MAX, 2)] {
            let head = frame(length, form, true);
            let (last, before) = head.split_last().unwrap();
            let mut lengths = Lengths::new(100);
            assert_eq!((lengths.look(before), lengths.look(&[*last])), (Ok(()), Err(TooLong)), "{length}");
        }
        assert_eq!(Lengths::new(100).look(&frame(100, 0, true)), Ok(()));
    }

    proptest! {
        #[test]
        fn frames_in_any_pieces_are_followed_to_the_one_that_is_too_long(
            lengths in prop::collection::vec((0..400_u64, 0..3_u8, any::<bool>()), 0..6),
            piece in 1..40_usize,
        ) {
            let most = 300;
            let mut bytes = Vec::new();
            for (length, form, masked) in &lengths {
                bytes.extend(frame(*length, *form, *masked));
                bytes.extend(vec![0xff; *length as usize]);
            }
            let mut followed = Lengths::new(most);
            let all = bytes.chunks(piece).try_for_each(|piece| followed.look(piece));
            let lawful = lengths.iter().all(|(length, ..)| *length <= most);
            prop_assert_eq!(all.is_ok(), lawful);
        }
    }
}
