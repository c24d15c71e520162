//! Reading a stream of server-sent events, piece by piece as it comes.

/// Longest block between two empty lines, in bytes: a plugin's line as JSON is much shorter.
const MAX_BLOCK_BYTES: usize = 1024 * 1024;

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// `event:`.
    pub name: String,
    /// `id:`, when it had one.
    pub id: Option<String>,
    /// `data:`.
    pub data: String,
}

/// The reader; comments are left out.
#[derive(Debug, Default)]
pub struct EventReader {
    rest: Vec<u8>,
}

/// More than [`MAX_BLOCK_BYTES`] without an end: what is read is no stream of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

impl EventReader {
    /// Takes a piece; gives the events that are complete with it.
    pub fn take(&mut self, piece: &[u8]) -> Result<Vec<Event>, TooLong> {
        self.rest.extend(piece.iter().filter(|byte| **byte != b'\r'));
        let mut events = Vec::new();
        while let Some(end) = self.rest.windows(2).position(|two| two == b"\n\n") {
            let block: Vec<u8> = self.rest.drain(..end + 2).collect();
            events.extend(event(&String::from_utf8_lossy(&block)));
        }
        if self.rest.len() > MAX_BLOCK_BYTES { Err(TooLong) } else { Ok(events) }
    }
}

/// The event of a block; `None` when it has nothing but comments.
fn event(block: &str) -> Option<Event> {
    let mut event = Event::default();
    let mut any = false;
    for line in block.lines() {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => event.name = value.to_owned(),
            "id" => event.id = Some(value.to_owned()),
            "data" => event.data.push_str(value),
            _ => continue,
        }
        any = true;
    }
    any.then_some(event)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STREAM: &str =
        ": hello\n\nid: a.1\nevent: line\ndata: {\"x\":\"y: z\"}\n\n: keep-alive\n\nevent: end\r\ndata: {}\r\n\r\n";

    fn expected() -> Vec<Event> {
        let line = Event { name: "line".to_owned(), id: Some("a.1".to_owned()), data: "{\"x\":\"y: z\"}".to_owned() };
        vec![line, Event { name: "end".to_owned(), id: None, data: "{}".to_owned() }]
    }

    #[test]
    fn a_block_without_an_end_is_refused_at_the_bound() {
        let mut reader = EventReader::default();
        assert_eq!(reader.take(&vec![b'x'; MAX_BLOCK_BYTES + 1]), Err(TooLong));
    }

    proptest! {
        #[test]
        fn events_are_the_same_however_the_stream_is_cut(cuts in proptest::collection::vec(1usize..20, 1..40)) {
            let (mut reader, mut events, mut rest) = (EventReader::default(), Vec::new(), STREAM.as_bytes());
            for cut in cuts.iter().cycle() {
                let (piece, tail) = rest.split_at((*cut).min(rest.len()));
                events.extend(reader.take(piece).unwrap());
                rest = tail;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(events, expected());
        }
    }
}
