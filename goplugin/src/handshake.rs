//! The handshake line: what a plugin prints first on its stdout (wire.md §1.3). Pure parser and printer.
//!
//! No I/O: reading the line under its limits is `host::output`'s part, and whether the named socket exists and lies in
//! the private folder is checked by `host::socket`.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use thiserror::Error;

use crate::text::clean;

/// The version of go-plugin itself, first field of the line.
pub const CORE_PROTOCOL_VERSION: u32 = 1;

/// The longest line a host reads, in bytes. A Go plugin's line has about 840.
pub const MAX_LINE_BYTES: usize = 64 * 1024;

/// go-plugin takes field 6 for a certificate only if it is longer than this many characters.
const SHORTEST_CERTIFICATE: usize = 50;

/// How much of a wrong line or field an error quotes, in bytes.
const QUOTE_BYTES: usize = 200;

/// A right handshake line, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handshake {
    /// The plugin's unix socket, as the plugin wrote it: absolute, but not yet checked against the file system.
    pub socket: PathBuf,
    /// The plugin's one-time certificate, DER.
    pub certificate: Vec<u8>,
}

/// Why a line is not a handshake a host can accept. One variant for each check, in the order of the checks.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HandshakeError {
    /// The first line on stdout was something else.
    #[error(
        "the plugin printed {line:?} on stdout before its handshake line; make it print to stderr, or only after \
         serving began"
    )]
    PrintedSomethingElse {
        /// The line, cut and cleaned.
        line: String,
    },
    /// Fewer than the four fields that every version of the protocol has.
    #[error("the handshake line {line:?} has {count} fields, at least 4 are needed; build the plugin with go-plugin")]
    TooFewFields {
        /// The line, cut and cleaned.
        line: String,
        /// Fields found.
        count: usize,
    },
    /// Field 1 is not the core protocol version 1.
    #[error(
        "the plugin speaks go-plugin core protocol {found}, this host speaks {CORE_PROTOCOL_VERSION}; rebuild the plugin"
    )]
    WrongCoreVersion {
        /// What the plugin announced, cut and cleaned.
        found: String,
    },
    /// Field 2 is not the version that the host offered.
    #[error(
        "the plugin speaks application protocol {found}, this host offers {offered}; rebuild the plugin for {offered}"
    )]
    WrongAppVersion {
        /// What the plugin announced, cut and cleaned.
        found: String,
        /// What the host offered.
        offered: u32,
    },
    /// Field 3 is `tcp`: any user of the machine could connect to it.
    #[error("the plugin listens on tcp, which is refused on linux; build it with a go-plugin that uses unix sockets")]
    TcpRefused,
    /// Field 3 is neither `unix` nor `tcp`.
    #[error("the plugin names the unknown network {found:?}, only unix is accepted")]
    UnknownNetwork {
        /// What the plugin announced, cut and cleaned.
        found: String,
    },
    /// Field 4 is not an absolute path.
    #[error("the plugin's socket address {found:?} is not an absolute path")]
    BadAddress {
        /// What the plugin announced, cut and cleaned.
        found: String,
    },
    /// Field 5 is absent or `netrpc`: the old protocol.
    #[error("the plugin speaks the old net/rpc protocol; set GRPCServer in its ServeConfig and rebuild it")]
    NetRpc,
    /// Field 5 is neither `grpc` nor `netrpc`.
    #[error("the plugin names the unknown protocol {found:?}, only grpc is accepted")]
    UnknownProtocol {
        /// What the plugin announced, cut and cleaned.
        found: String,
    },
    /// Field 6 is absent or empty: the plugin would be speaking in clear.
    #[error("the plugin sent no certificate, so mutual tls is impossible; let go-plugin choose tls (no TLSProvider)")]
    MissingCertificate,
    /// Field 6 is too short to be a certificate.
    #[error("the plugin's certificate field has only {length} characters; rebuild it with a current go-plugin")]
    ShortCertificate {
        /// Characters found.
        length: usize,
    },
    /// Field 6 is not DER in base64 with the standard alphabet and without padding.
    #[error("the plugin's certificate cannot be decoded: {reason}; rebuild it with a current go-plugin")]
    UndecodableCertificate {
        /// What is wrong with it.
        reason: String,
    },
    /// Field 7 is `true`, though multiplexing was not offered.
    #[error("the plugin announces a multiplexed broker, which this host did not offer")]
    Multiplexed,
}

/// Takes the first stdout line of a plugin apart, which was offered the application protocol `offered`.
///
/// `line` may still have its line end. The checks run in the order of [`HandshakeError`]'s variants.
pub fn parse(line: &[u8], offered: u32) -> Result<Handshake, HandshakeError> {
    let quote = || clean(line.trim_ascii(), QUOTE_BYTES);
    let foreign = || HandshakeError::PrintedSomethingElse { line: quote() };
    let text = std::str::from_utf8(line).map_err(|_| foreign())?.trim();
    let fields: Vec<&str> = text.split('|').collect();
    if fields.len() < 2 || !is_number(fields[0]) {
        return Err(foreign());
    }
    let &[core, app, network, address, ref optional @ ..] = fields.as_slice() else {
        return Err(HandshakeError::TooFewFields { line: quote(), count: fields.len() });
    };
    if core.parse() != Ok(CORE_PROTOCOL_VERSION) {
        return Err(HandshakeError::WrongCoreVersion { found: short(core) });
    }
    if app.parse() != Ok(offered) {
        return Err(HandshakeError::WrongAppVersion { found: short(app), offered });
    }
    let socket = parse_address(network, address)?;
    match optional.first().copied() {
        Some("grpc") => {}
        None | Some("" | "netrpc") => return Err(HandshakeError::NetRpc),
        Some(other) => return Err(HandshakeError::UnknownProtocol { found: short(other) }),
    }
    let certificate = parse_certificate(optional.get(1).copied().unwrap_or_default())?;
    match optional.get(2) {
        Some(&"true") => Err(HandshakeError::Multiplexed),
        _ => Ok(Handshake { socket, certificate }),
    }
}

/// The line that a plugin prints for `handshake`, without its line end.
///
/// The socket's path must be UTF-8, or the other side will refuse it.
pub fn format(handshake: &Handshake, app_version: u32) -> String {
    let socket = handshake.socket.display();
    let certificate = STANDARD_NO_PAD.encode(&handshake.certificate);
    format!("{CORE_PROTOCOL_VERSION}|{app_version}|unix|{socket}|grpc|{certificate}")
}

fn parse_address(network: &str, address: &str) -> Result<PathBuf, HandshakeError> {
    match network {
        "unix" => {}
        "tcp" => return Err(HandshakeError::TcpRefused),
        other => return Err(HandshakeError::UnknownNetwork { found: short(other) }),
    }
    // A zero byte would end the path early in the kernel.
    if !address.starts_with('/') || address.contains('\0') {
        return Err(HandshakeError::BadAddress { found: short(address) });
    }
    Ok(PathBuf::from(address))
}

fn parse_certificate(field: &str) -> Result<Vec<u8>, HandshakeError> {
    if field.is_empty() {
        return Err(HandshakeError::MissingCertificate);
    }
    if field.len() <= SHORTEST_CERTIFICATE {
        return Err(HandshakeError::ShortCertificate { length: field.chars().count() });
    }
    let der = STANDARD_NO_PAD
        .decode(field)
        .map_err(|error| HandshakeError::UndecodableCertificate { reason: error.to_string().to_lowercase() })?;
    if !is_one_sequence(&der) {
        return Err(HandshakeError::UndecodableCertificate { reason: "it is not one DER sequence".to_owned() });
    }
    Ok(der)
}

/// Whether `der` is exactly one SEQUENCE in long form with a two-byte length, which every certificate of 256 bytes to
/// 64 KiB is, or with a one-byte length. What is inside is left to TLS, which compares bytes and checks signatures.
fn is_one_sequence(der: &[u8]) -> bool {
    match *der {
        [0x30, 0x82, high, low, ref rest @ ..] => usize::from(u16::from_be_bytes([high, low])) == rest.len(),
        [0x30, 0x81, length, ref rest @ ..] => usize::from(length) == rest.len(),
        _ => false,
    }
}

fn is_number(field: &str) -> bool {
    !field.is_empty() && field.bytes().all(|byte| byte.is_ascii_digit())
}

fn short(field: &str) -> String {
    clean(field.as_bytes(), QUOTE_BYTES)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A DER sequence of `length` content bytes.
    fn der(length: u16) -> Vec<u8> {
        let mut der = vec![0x30, 0x82];
        der.extend(length.to_be_bytes());
        der.extend((0..length).map(|index| index as u8));
        der
    }

    fn certificate() -> String {
        STANDARD_NO_PAD.encode(der(300))
    }

    fn error(line: &str) -> HandshakeError {
        parse(line.as_bytes(), 1).expect_err("the line is wrong")
    }

    #[test]
    fn the_line_of_a_go_plugin_is_taken_apart() {
        let line = format!("1|1|unix|/run/x/plugin3614724845|grpc|{}\r\n", certificate());
        let wanted = Handshake { socket: PathBuf::from("/run/x/plugin3614724845"), certificate: der(300) };
        assert_eq!(parse(line.as_bytes(), 1), Ok(wanted));
    }

    #[test]
    fn a_seventh_field_that_says_false_is_harmless() {
        let line = format!("1|1|unix|/s|grpc|{}|false", certificate());
        assert!(parse(line.as_bytes(), 1).is_ok());
    }

    #[test]
    fn every_check_has_its_own_error() {
        let cert = certificate();
        let quoted = |line: &str| HandshakeError::PrintedSomethingElse { line: line.to_owned() };
        let cases = [
            ("hello".to_owned(), quoted("hello")),
            (String::new(), quoted("")),
            ("warn|disk is full|x|y|z".to_owned(), quoted("warn|disk is full|x|y|z")),
            ("1|1|unix".to_owned(), HandshakeError::TooFewFields { line: "1|1|unix".to_owned(), count: 3 }),
            (format!("2|1|unix|/s|grpc|{cert}"), HandshakeError::WrongCoreVersion { found: "2".to_owned() }),
            (format!("1|7|unix|/s|grpc|{cert}"), HandshakeError::WrongAppVersion { found: "7".to_owned(), offered: 1 }),
            (format!("1|x|unix|/s|grpc|{cert}"), HandshakeError::WrongAppVersion { found: "x".to_owned(), offered: 1 }),
            (format!("1|1|tcp|127.0.0.1:10000|grpc|{cert}"), HandshakeError::TcpRefused),
            (format!("1|1|pipe|/s|grpc|{cert}"), HandshakeError::UnknownNetwork { found: "pipe".to_owned() }),
            (format!("1|1|unix|s|grpc|{cert}"), HandshakeError::BadAddress { found: "s".to_owned() }),
            ("1|1|unix|/s".to_owned(), HandshakeError::NetRpc),
            ("1|1|unix|/s|netrpc|".to_owned(), HandshakeError::NetRpc),
            (format!("1|1|unix|/s|http|{cert}"), HandshakeError::UnknownProtocol { found: "http".to_owned() }),
            ("1|1|unix|/s|grpc".to_owned(), HandshakeError::MissingCertificate),
            ("1|1|unix|/s|grpc|".to_owned(), HandshakeError::MissingCertificate),
            ("1|1|unix|/s|grpc|MIIB".to_owned(), HandshakeError::ShortCertificate { length: 4 }),
            (format!("1|1|unix|/s|grpc|{cert}|true"), HandshakeError::Multiplexed),
        ];
        for (line, wanted) in cases {
            assert_eq!(error(&line), wanted, "{line}");
        }
    }

    #[test]
    fn a_certificate_that_is_not_base64_or_not_der_is_undecodable() {
        for field in ["!".repeat(60), "A".repeat(60), format!("{}=", certificate())] {
            let found = error(&format!("1|1|unix|/s|grpc|{field}"));
            assert!(matches!(found, HandshakeError::UndecodableCertificate { .. }), "{field}: {found}");
        }
    }

    #[test]
    fn the_quoted_line_is_cut_and_cleaned() {
        let line = format!("\u{1b}[31m{}\u{7}", "x".repeat(10_000));
        assert_eq!(error(&line), HandshakeError::PrintedSomethingElse { line: format!("{}… (cut)", "x".repeat(200)) });
    }

    proptest! {
        #[test]
        fn any_bytes_are_judged_without_a_panic_and_with_a_bounded_text(line: Vec<u8>, offered: u32) {
            if let Err(error) = parse(&line, offered) {
                prop_assert!(error.to_string().len() < 2048);
                prop_assert!(!error.to_string().chars().any(char::is_control));
            }
        }

        #[test]
        fn any_fields_are_judged_without_a_panic(fields in prop::collection::vec("[01]|unix|grpc|/s|[ -~]{0,70}", 0..9)) {
            let _ = parse(fields.join("|").as_bytes(), 1);
        }

        #[test]
        fn what_is_printed_is_read_back(socket in "/[a-zA-Z0-9/_.-]{1,90}", length in 60_u16..2000, version: u32) {
            let handshake = Handshake { socket: PathBuf::from(socket), certificate: der(length) };
            prop_assert_eq!(parse(format(&handshake, version).as_bytes(), version), Ok(handshake));
        }
    }
}
