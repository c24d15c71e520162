//! Cutting a byte stream into lines of bounded length. Pure.
//!
//! What a line means is `log_line`'s part, reading the stream is `output`'s.

/// The longest line that is kept, in bytes. What follows up to the line's end is skipped.
pub(crate) const MAX_LINE_BYTES: usize = 16 * 1024;

/// Assembles lines from chunks that are cut anywhere.
#[derive(Debug, Default)]
pub(crate) struct LineSplitter {
    pending: Vec<u8>,
    /// The pending line was too long and its start was given out already.
    skipping: bool,
}

impl LineSplitter {
    /// Gives each line that `chunk` completes, without its end, to `line`; `true` when it was cut. A line that is too
    /// long is given as soon as that is known, so that a stream without line ends shows up too.
    pub(crate) fn push(&mut self, chunk: &[u8], mut line: impl FnMut(&[u8], bool)) {
        for piece in chunk.split_inclusive(|&byte| byte == b'\n') {
            let (piece, ended) = match piece {
                [piece @ .., b'\n'] => (piece, true),
                piece => (piece, false),
            };
            if !self.skipping {
                let room = MAX_LINE_BYTES - self.pending.len();
                self.pending.extend_from_slice(&piece[..piece.len().min(room)]);
                if piece.len() > room {
                    self.give(&mut line, true);
                    self.skipping = true;
                }
            }
            if ended {
                if !self.skipping {
                    self.give(&mut line, false);
                }
                self.skipping = false;
            }
        }
    }

    /// Gives the last line, if the stream ended without a line end.
    pub(crate) fn finish(&mut self, mut line: impl FnMut(&[u8], bool)) {
        if !self.pending.is_empty() {
            self.give(&mut line, false);
        }
    }

    fn give(&mut self, line: &mut impl FnMut(&[u8], bool), cut: bool) {
        let kept = self.pending.strip_suffix(b"\r").unwrap_or(&self.pending);
        line(kept, cut);
        self.pending.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(chunks: &[&[u8]]) -> Vec<(Vec<u8>, bool)> {
        let mut lines = Vec::new();
        let mut splitter = LineSplitter::default();
        for chunk in chunks {
            splitter.push(chunk, |line, cut| lines.push((line.to_vec(), cut)));
        }
        splitter.finish(|line, cut| lines.push((line.to_vec(), cut)));
        lines
    }

    #[test]
    fn lines_are_assembled_across_chunks() {
        let lines = split(&[b"one\r\ntw", b"o\n\nthr", b"ee"]);
        let wanted: [&[u8]; 4] = [b"one", b"two", b"", b"three"];
        assert_eq!(lines, wanted.map(|line| (line.to_vec(), false)));
    }

    #[test]
    fn the_rest_of_a_line_that_is_too_long_is_skipped() {
        let long = vec![b'x'; 300 * 1024];
        let lines = split(&[&long, b"xx\n", b"short\n"]);
        assert_eq!(lines, [(long[..MAX_LINE_BYTES].to_vec(), true), (b"short".to_vec(), false)]);
    }

    #[test]
    fn a_line_of_exactly_the_limit_is_whole() {
        let line = vec![b'x'; MAX_LINE_BYTES];
        assert_eq!(split(&[&line, b"\n"]), [(line, false)]);
    }

    proptest! {
        #[test]
        fn how_the_stream_is_cut_makes_no_difference(text in "[a\n\r]{0,60}", cuts in prop::collection::vec(1_usize..9, 0..20)) {
            let mut rest = text.as_bytes();
            let mut chunks = Vec::new();
            for cut in cuts {
                let (chunk, left) = rest.split_at(cut.min(rest.len()));
                chunks.push(chunk);
                rest = left;
            }
            chunks.push(rest);
            prop_assert_eq!(split(&chunks), split(&[text.as_bytes()]));
        }
    }
}
