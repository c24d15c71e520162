//! Git's protocol for credential helpers (git's documents gitcredentials(7), git-credential(1)): lines `key=value`,
//! ended by an empty line or the end of the input.
//!
//! Of what git says only protocol, host and path are taken; of what is said twice the last counts, as git has it. What
//! is not known is left alone, as git asks for.

use secrecy::{ExposeSecret, SecretString, zeroize::Zeroizing};
use time::OffsetDateTime;

use super::git::{MAX_NAME_BYTES, Remote};

/// Largest input of a helper, in bytes: git bounds one line to 64 KiB and sends a handful.
pub const MAX_INPUT_BYTES: usize = 256 * 1024;

/// Why an input is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// More than [`MAX_INPUT_BYTES`].
    #[error("git said more than {MAX_INPUT_BYTES} bytes")]
    TooLarge,
    /// A line without `=`.
    #[error("git said a line that is no key=value")]
    Line,
    /// A name that is no text, has control characters, or is too long.
    #[error("git said a protocol, host or path that is not one line of text of at most {MAX_NAME_BYTES} bytes")]
    Name,
}

/// Reads what git says.
pub fn parse(input: &[u8]) -> Result<Remote, ProtocolError> {
    if input.len() > MAX_INPUT_BYTES {
        return Err(ProtocolError::TooLarge);
    }
    let mut remote = Remote::default();
    for line in input.split(|byte| *byte == b'\n').take_while(|line| !line.is_empty()) {
        let divided = line.iter().position(|byte| *byte == b'=').ok_or(ProtocolError::Line)?;
        let place = match &line[..divided] {
            b"protocol" => &mut remote.protocol,
            b"host" => &mut remote.host,
            b"path" => &mut remote.path,
            _ => continue,
        };
        *place = String::from_utf8(line[divided + 1..].to_vec()).map_err(|_| ProtocolError::Name)?;
    }
    if remote.is_plain() { Ok(remote) } else { Err(ProtocolError::Name) }
}

/// Writes the answer to git. `None` when a text would be more than its line: nothing may reach git then.
pub fn answer(username: &str, secret: &SecretString, expires_at: Option<OffsetDateTime>) -> Option<Zeroizing<String>> {
    let secret = secret.expose_secret();
    if [username, secret].into_iter().any(|text| text.is_empty() || text.chars().any(char::is_control)) {
        return None;
    }
    let mut text = Zeroizing::new(String::with_capacity(username.len() + secret.len() + 80));
    for part in ["username=", username, "\npassword=", secret, "\n"] {
        text.push_str(part);
    }
    if let Some(at) = expires_at {
        text.push_str(&format!("password_expiry_utc={}\n", at.unix_timestamp()));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use time::macros::datetime;

    use super::*;

    fn remote(protocol: &str, host: &str, path: &str) -> Remote {
        Remote { protocol: protocol.to_owned(), host: host.to_owned(), path: path.to_owned() }
    }

    #[test]
    fn what_git_says_is_read_to_its_empty_line_and_what_is_not_known_left_alone() {
        let text = "capability[]=authtype\nprotocol=https\nhost=x.test:8443\npath=a=b/c.git\nwwwauth[]=Basic realm=\"\u{e9}\"\nusername=u\n\nhost=later\n";
        assert_eq!(parse(text.as_bytes()), Ok(remote("https", "x.test:8443", "a=b/c.git")));
        assert_eq!(parse(b""), Ok(Remote::default()));
        assert_eq!(parse(b"host=a\nhost=b"), Ok(remote("", "b", "")));
        assert_eq!(parse(b"other=\xff\xfe\n=\nhost=\n"), Ok(Remote::default()));
    }

    #[test]
    fn what_is_no_line_of_the_protocol_is_refused() {
        assert_eq!(parse(b"protocol"), Err(ProtocolError::Line));
        let names: [&[u8]; 4] = [b"host=\xff", b"path=a\0b", b"host=a\r", b"protocol=\x1b"];
        for name in names {
            assert_eq!(parse(name), Err(ProtocolError::Name), "{name:?}");
        }
        assert_eq!(parse(format!("path={}", "x".repeat(MAX_NAME_BYTES + 1)).as_bytes()), Err(ProtocolError::Name));
        assert_eq!(parse(&vec![b'\n'; MAX_INPUT_BYTES + 1]), Err(ProtocolError::TooLarge));
    }

    #[test]
    fn the_answer_has_a_line_for_each_text_and_none_when_a_text_has_two() {
        let secret = SecretString::from("s=3".to_owned());
        let at = datetime!(2026-11-30 12:00 UTC);
        let text = answer("u", &secret, Some(at)).unwrap();
        assert_eq!(*text, "username=u\npassword=s=3\npassword_expiry_utc=1796040000\n");
        assert_eq!(*answer("u", &secret, None).unwrap(), "username=u\npassword=s=3\n");
        for bad in ["", "a\nquit=1", "a\0", "a\r"] {
            assert!(answer(bad, &secret, None).is_none() && answer("u", &bad.to_owned().into(), None).is_none());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_get_a_verdict_and_what_passes_is_one_line(bytes in prop::collection::vec(any::<u8>(), 0..80),
            text in "(host|path|protocol|x)?=?[a-z/\\r\\n\\x00=.é]{0,20}") {
            for input in [bytes.as_slice(), text.as_bytes()] {
                if let Ok(remote) = parse(input) {
                    prop_assert!(remote.is_plain());
                }
            }
        }

        #[test]
        fn an_answer_has_exactly_its_lines(username in "(?s:.{0,8})", secret in "(?s:.{0,8})") {
            if let Some(text) = answer(&username, &secret.clone().into(), None) {
                let lines: Vec<_> = text.split('\n').collect();
                prop_assert_eq!(lines, vec![format!("username={username}"), format!("password={secret}"), String::new()]);
            }
        }
    }
}
