//! One tar header block and the records of a PAX header, read strictly.
//!
//! Anything that readers are known to read differently is refused: numbers with signs or junk, negative or huge
//! base-256 sizes, wrong checksums, unknown formats, text after a NUL, malformed PAX records. Only regular files,
//! folders, PAX headers for one entry (`x`) and GNU long names (`L`) exist here.

use super::error::PackageError;
use crate::domain::clean::quote;

/// Size of a header and of the unit data is padded to, in bytes.
pub(super) const BLOCK: usize = 512;

/// What a header announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Folder,
    /// PAX records for the next entry.
    Pax,
    /// A GNU long name for the next entry.
    LongName,
}

/// The fields of a header that matter here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub kind: Kind,
    /// Size of the data that follows, in bytes, before padding.
    pub size: u64,
    pub name: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    V7,
    Ustar,
    Gnu,
}

/// Reads a header block that is not all zeros.
pub(super) fn parse(block: &[u8; BLOCK]) -> Result<Header, PackageError> {
    check_sum(block)?;
    let format = match &block[257..265] {
        b"ustar\x0000" => Format::Ustar,
        b"ustar  \0" => Format::Gnu,
        [0, 0, 0, 0, 0, 0, 0, 0] => Format::V7,
        _ => return Err(bad("unknown header format")),
    };
    let name = name(block, format)?;
    let kind = match (block[156], format) {
        (b'0' | 0, _) => Kind::File,
        (b'5', _) => Kind::Folder,
        (b'x', Format::Ustar) => Kind::Pax,
        (b'L', Format::Ustar | Format::Gnu) => Kind::LongName,
        _ => return Err(PackageError::UnsupportedType(quote(&String::from_utf8_lossy(&name)))),
    };
    Ok(Header { kind, size: size(&block[124..136])?, name })
}

fn bad(text: &str) -> PackageError {
    PackageError::bad_archive(text)
}

fn check_sum(block: &[u8; BLOCK]) -> Result<(), PackageError> {
    let field = octal(&block[148..156]).ok_or_else(|| bad("malformed header checksum"))?;
    let counted = |i: usize, byte: u8| if (148..156).contains(&i) { b' ' } else { byte };
    let sum: u64 = block.iter().enumerate().map(|(i, byte)| u64::from(counted(i, *byte))).sum();
    if sum == field { Ok(()) } else { Err(bad("wrong header checksum")) }
}

fn name(block: &[u8; BLOCK], format: Format) -> Result<Vec<u8>, PackageError> {
    let name = terminated(&block[0..100])?;
    let prefix = if format == Format::Ustar { terminated(&block[345..500])? } else { &[] };
    if prefix.is_empty() {
        return Ok(name.to_vec());
    }
    Ok([prefix, b"/", name].concat())
}

/// The text before the first NUL; everything after it must be NUL as well.
fn terminated(field: &[u8]) -> Result<&[u8], PackageError> {
    let end = field.iter().position(|b| *b == 0).unwrap_or(field.len());
    let (text, rest) = field.split_at(end);
    if rest.iter().all(|b| *b == 0) { Ok(text) } else { Err(bad("a name has text after a NUL")) }
}

fn size(field: &[u8]) -> Result<u64, PackageError> {
    let size = match field[0] {
        0x80 if field[1..4].iter().all(|b| *b == 0) => {
            field[4..].iter().try_fold(0u64, |n, b| n.checked_mul(256)?.checked_add(u64::from(*b)))
        }
        first if first & 0x80 != 0 => None,
        _ => octal(field),
    };
    size.filter(|n| *n <= u64::MAX / 4).ok_or_else(|| bad("a size is malformed, negative or huge"))
}

/// Octal digits with spaces before and only spaces and NULs after.
fn octal(field: &[u8]) -> Option<u64> {
    let start = field.iter().position(|b| *b != b' ')?;
    let field = &field[start..];
    let end = field.iter().position(|b| !b.is_ascii_digit()).unwrap_or(field.len());
    let (digits, rest) = field.split_at(end);
    if digits.is_empty() || !rest.iter().all(|b| matches!(b, 0 | b' ')) {
        return None;
    }
    digits.iter().try_fold(0u64, |n, b| match b {
        b'0'..=b'7' => n.checked_mul(8)?.checked_add(u64::from(b - b'0')),
        _ => None,
    })
}

/// What a PAX header says about the next entry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Pax {
    pub path: Option<Vec<u8>>,
    pub size: Option<u64>,
}

/// Reads the records `<length> <key>=<value>\n` of a PAX header.
pub(super) fn parse_pax(mut data: &[u8]) -> Result<Pax, PackageError> {
    let mut pax = Pax::default();
    let mut keys = std::collections::HashSet::new();
    while !data.is_empty() {
        let (key, value, rest) = record(data).ok_or_else(|| bad("malformed PAX record"))?;
        if value.is_empty() || !keys.insert(key) {
            return Err(bad("empty or repeated PAX record"));
        }
        match key {
            b"path" if value.contains(&0) => return Err(bad("a PAX path holds a NUL")),
            b"path" => pax.path = Some(value.to_vec()),
            b"size" => pax.size = Some(decimal(value).ok_or_else(|| bad("malformed PAX size"))?),
            b"linkpath" => return Err(PackageError::UnsupportedType(quote("PAX linkpath"))),
            _ if key.starts_with(b"GNU.sparse.") => return Err(PackageError::UnsupportedType(quote("PAX GNU.sparse"))),
            _ => {}
        }
        data = rest;
    }
    Ok(pax)
}

/// Splits off one record: key, value, rest.
fn record(data: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = data.iter().position(|b| *b == b' ')?;
    let length = usize::try_from(decimal(&data[..space])?).ok()?;
    let (record, rest) = data.split_at_checked(length)?;
    let body = record.strip_suffix(b"\n")?.get(space + 1..)?;
    let equals = body.iter().position(|b| *b == b'=')?;
    let (key, value) = (&body[..equals], &body[equals + 1..]);
    (!key.is_empty() && std::str::from_utf8(key).is_ok()).then_some((key, value, rest))
}

/// Decimal digits without sign or needless zero.
fn decimal(text: &[u8]) -> Option<u64> {
    let plain = text.iter().all(u8::is_ascii_digit) && !(text.len() > 1 && text[0] == b'0');
    plain.then(|| std::str::from_utf8(text).ok()?.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A lawful ustar header, to be damaged by `change` and then summed up again.
    fn header(change: impl FnOnce(&mut [u8; BLOCK])) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        block[..4].copy_from_slice(b"ui/x");
        block[100..108].copy_from_slice(b"0000644\0");
        block[124..136].copy_from_slice(b"00000000017\0");
        block[156] = b'0';
        block[257..265].copy_from_slice(b"ustar\x0000");
        change(&mut block);
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|b| u32::from(*b)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        block
    }

    fn file(size: u64, name: &str) -> Result<Header, PackageError> {
        Ok(Header { kind: Kind::File, size, name: name.as_bytes().to_vec() })
    }

    #[test]
    fn the_three_header_formats_are_read() {
        assert_eq!(parse(&header(|_| {})), file(15, "ui/x"));
        assert_eq!(parse(&header(|b| b[257..265].copy_from_slice(b"ustar  \0"))), file(15, "ui/x"));
        assert_eq!(parse(&header(|b| b[257..265].fill(0))), file(15, "ui/x"));
        assert_eq!(parse(&header(|b| b[345..348].copy_from_slice(b"pre"))), file(15, "pre/ui/x"));
        assert_eq!(parse(&header(|b| b[156] = 0)), file(15, "ui/x"));
        assert!(parse(&header(|b| b[263..265].fill(0))).is_err(), "ustar with version NUL is ambiguous");
    }

    #[test]
    fn only_files_folders_pax_and_long_names_pass() {
        for flag in 0..=255u8 {
            let kind = parse(&header(|b| b[156] = flag)).map(|h| h.kind);
            match flag {
                0 | b'0' => assert_eq!(kind, Ok(Kind::File)),
                b'5' => assert_eq!(kind, Ok(Kind::Folder)),
                b'x' => assert_eq!(kind, Ok(Kind::Pax)),
                b'L' => assert_eq!(kind, Ok(Kind::LongName)),
                _ => assert_eq!(kind, Err(PackageError::UnsupportedType("\"ui/x\"".to_owned())), "{flag}"),
            }
        }
    }

    #[test]
    fn sizes_have_exactly_one_reading() {
        let size = |field: &[u8; 12]| parse(&header(|b| b[124..136].copy_from_slice(field))).map(|h| h.size);
        assert_eq!(size(b"         17 "), Ok(15));
        assert_eq!(size(b"00000000017 "), Ok(15));
        assert_eq!(size(b"\x80\0\0\0\0\0\0\0\0\0\x01\x00"), Ok(256));
        for field in [
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
            b"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff",
            b"\x80\0\0\x01\0\0\0\0\0\0\0\0",
            b"\xc0\0\0\0\0\0\0\0\0\0\0\x01",
            b"-0000000017\0",
            b"+0000000017\0",
            b"00000 00017\0",
            b"00000000018\0",
            b"0000000017\0x",
            b"            ",
            b"\0\0\0\0\0\0\0\0\0\0\0\0",
        ] {
            assert!(size(field).is_err(), "{field:?}");
        }
    }

    #[test]
    fn damaged_headers_are_refused() {
        let mut block = header(|_| {});
        block[0] = b'v';
        assert_eq!(parse(&block), Err(bad("wrong header checksum")));
        block[148] = b'z';
        assert_eq!(parse(&block), Err(bad("malformed header checksum")));
        assert_eq!(parse(&header(|b| b[10] = b'x')), Err(bad("a name has text after a NUL")));
        assert_eq!(parse(&header(|b| b[257] = b'U')), Err(bad("unknown header format")));
    }

    #[test]
    fn pax_records_are_read_and_unknown_keys_skipped() {
        let data = b"13 path=ui/y\n10 size=7\n20 mtime=1234.56789\n17 comment=a=b\nc\n";
        assert_eq!(parse_pax(data), Ok(Pax { path: Some(b"ui/y".to_vec()), size: Some(7) }));
        assert_eq!(parse_pax(b""), Ok(Pax::default()));
    }

    #[test]
    fn malformed_pax_records_are_refused_not_skipped() {
        for data in [
            &b"12 path=ui/y\n"[..],
            b"14 path=ui/y\n",
            b"99 path=ui/y\n",
            b"013 path=ui/y",
            b"+13 path=ui/y",
            b"13 path=ui/y ",
            b"8 path\n\n",
            b"6 =ab\n",
            b"x path=a\n",
            b"0 a=b\n",
            b"5 a=\n",
            b"13 path=ui/y\n13 path=ui/z\n",
            b"11 size=-7\n",
            b"11 size=07\n",
            b"12 path=a\0b\n",
        ] {
            assert!(matches!(parse_pax(data), Err(PackageError::BadArchive(_))), "{:?}", String::from_utf8_lossy(data));
        }
        for data in [&b"14 linkpath=x\n"[..], b"22 GNU.sparse.major=1\n"] {
            assert!(matches!(parse_pax(data), Err(PackageError::UnsupportedType(_))));
        }
    }

    proptest! {
        #[test]
        fn random_blocks_and_records_get_a_verdict(bytes in proptest::collection::vec(any::<u8>(), BLOCK), cut in 0..BLOCK) {
            let block: &[u8; BLOCK] = bytes.as_slice().try_into().unwrap();
            let _ = parse(block);
            let _ = parse_pax(&bytes[..cut]);
        }

        #[test]
        fn any_field_content_with_a_right_sum_gets_a_verdict(at in 0..BLOCK - 12, junk in any::<[u8; 12]>()) {
            let _ = parse(&header(|b| b[at..at + 12].copy_from_slice(&junk)));
        }
    }
}
