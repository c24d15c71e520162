//! Promises of the strict pass, on archives built byte by byte.

use proptest::prelude::*;

use super::sample::{Tar, header, package, pax_record, sum_up};
use super::*;

/// Feeds an archive in pieces and returns the members as `name:size`, folders with a final slash.
fn read_in(bytes: &[u8], piece: usize, limits: Limits) -> Result<Vec<String>, PackageError> {
    let mut guard = TarGuard::new(limits);
    bytes.chunks(piece).try_for_each(|part| guard.feed(part))?;
    guard.finish()?;
    let shown = |m: Member| {
        let path = m.path.map_or(".".to_owned(), |p| p.to_string());
        if m.folder { format!("{path}/") } else { format!("{path}:{}", m.size) }
    };
    Ok(std::iter::from_fn(|| guard.take_member()).map(shown).collect())
}

fn read(bytes: &[u8]) -> Result<Vec<String>, PackageError> {
    let result = read_in(bytes, usize::MAX, Limits::default());
    assert_eq!(read_in(bytes, 7, Limits::default()), result, "pieces must not matter");
    result
}

#[track_caller]
fn refused(bytes: &[u8], word: &str) {
    let error = read(bytes).expect_err(word).to_string();
    assert!(error.contains(word), "{error}");
}

#[test]
fn files_folders_and_both_kinds_of_long_names_are_read() {
    let long = format!("ui/{}", "n".repeat(200));
    let bytes = Tar::default()
        .folder("./")
        .folder("./ui/")
        .file("./ui/a", b"12345")
        .long_name(&long)
        .file("short", b"")
        .pax(&format!("{}{}", pax_record("path", "ui/\u{e9}"), pax_record("size", "3")))
        .file("ascii", b"abc")
        .end();
    assert_eq!(
        read(&bytes),
        Ok(vec!["./".into(), "ui/".into(), "ui/a:5".into(), format!("{long}:0"), "ui/\u{e9}:3".into()])
    );
}

#[test]
fn an_archive_may_end_with_zero_blocks_or_without() {
    assert_eq!(read(&Tar::default().file("a", b"x").cut()), Ok(vec!["a:1".into()]));
    assert_eq!(read(&Tar::default().file("a", b"x").raw(&[0; 10_240]).cut()), Ok(vec!["a:1".into()]));
    refused(&Tar::default().file("a", b"x").raw(&[0; 512]).file("b", b"y").end(), "data after the end");
    refused(&Tar::default().file("a", b"x").raw(&vec![0; 2_000_000]).cut(), "data after the end");
    refused(b"", "truncated");
    refused(&Tar::default().file("a", b"x").cut()[..700], "truncated");
    refused(&header("a", b'0', b"00000001000\0"), "truncated");
    refused(&Tar::default().file("a", b"").raw(b"rest").cut(), "truncated");
}

#[test]
fn links_in_any_order_are_refused() {
    refused(&Tar::default().link("ui/x", "/tmp/out").file("ui/x", b"data").end(), "unsupported type");
    refused(&Tar::default().file("ui/x", b"data").link("ui/y", "x").end(), "unsupported type");
    refused(&Tar::default().file("a", b"").entry(b'1', "b", b"").end(), "unsupported type");
}

#[test]
fn every_other_type_flag_is_refused() {
    for flag in [b'1', b'2', b'3', b'4', b'6', b'7', b'S', b'g', b'K', b'Z', b'D', b'M', b'V', b'X', b'N', 0xff] {
        refused(&Tar::default().entry(flag, "ui/x", b"").file("a", b"").end(), "unsupported type");
    }
}

#[test]
fn pax_must_be_well_formed_and_agree_with_the_header() {
    let with = |records: &str| Tar::default().pax(records).file("a", b"abc").end();
    refused(&with(&pax_record("size", "4")), "disagree");
    refused(&with("99 path=b\n"), "malformed PAX record");
    refused(&with("10 path=b\n\n"), "malformed PAX record");
    refused(&with(&pax_record("GNU.sparse.name", "b")), "unsupported type");
    refused(&with(&pax_record("linkpath", "b")), "unsupported type");
    refused(&with(&pax_record("path", "../b")), "\"..\" part");
    refused(&with(&format!("{}{}", pax_record("path", "b"), pax_record("path", "c"))), "repeated PAX record");
    refused(&Tar::default().pax(&pax_record("path", "b")).end(), "without an entry");
    refused(&Tar::default().pax(&pax_record("path", "b")).cut(), "truncated");
    refused(
        &Tar::default().pax(&pax_record("path", "b")).pax(&pax_record("path", "c")).file("a", b"").end(),
        "two extension",
    );
    refused(&Tar::default().long_name("b").long_name("c").file("a", b"").end(), "two extension");
    refused(&Tar::default().long_name("b").pax(&pax_record("path", "c")).file("a", b"").end(), "two long names");
    refused(&Tar::default().long_name("b\0c").file("a", b"").end(), "long name holds a NUL");
    refused(&Tar::default().long_name(&"x/".repeat(40_000)).file("a", b"").end(), "longer than 65536");
    refused(&Tar::default().pax("").file("a", b"").end(), "is empty");
}

#[test]
fn sizes_that_make_readers_loop_are_refused_at_once() {
    for size in [
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe\x00",
        b"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff",
        b"\x80\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff",
    ] {
        refused(&Tar::default().raw(&header("a", b'0', size)).end(), "malformed, negative or huge");
    }
    refused(&Tar::default().raw(&header("a", b'0', b"77777777777\0")).end(), "exceeds max size");
    let mut wrong = header("a", b'0', b"00000000000\0");
    wrong[0] = b'b';
    refused(&Tar::default().raw(&wrong).end(), "wrong header checksum");
    assert_eq!(read(&Tar::default().raw(&header("a", b'0', b"          1 ")).data(b"x").end()), Ok(vec!["a:1".into()]));
}

#[test]
fn names_are_checked_wherever_they_come_from() {
    let mut nul = header("ui", b'0', b"00000000000\0");
    nul[3] = b'x';
    sum_up(&mut nul);
    refused(&Tar::default().raw(&nul).end(), "text after a NUL");
    for (name, word) in
        [("/etc/x", "absolute"), ("../x", ".."), ("ui//x", "empty"), ("ui\\x", "backslash"), ("", "empty")]
    {
        refused(&Tar::default().file(name, b"").end(), word);
    }
    refused(&Tar::default().long_name(&format!("ui/{}", "x".repeat(300))).file("a", b"").end(), "255 bytes");
    refused(&Tar::default().file("server/p", b"good").file("server/p", b"bad").end(), "collides");
    refused(&Tar::default().file("UI/x", b"").file("ui/x", b"").end(), "collides");
    refused(&Tar::default().file("caf\u{e9}", b"").file("cafe\u{301}", b"").end(), "collides");
    refused(&Tar::default().file("a/", b"").end(), "ends in a slash");
    refused(&Tar::default().entry(b'5', "a/", b"data").end(), "folder has data");
}

#[test]
fn every_limit_stops_the_reading_where_it_is_passed() {
    let limits = Limits { expanded: 1000, files: 3, manifest: 10, checksums: 20, signature: 30, ..Limits::default() };
    for (tar, error) in [
        (Tar::default().file("a", &[0; 600]).file("b", &[0; 600]), PackageError::ExpandedTooLarge(1000)),
        (Tar::default().file("a", &[0; 1001]), PackageError::FileTooLarge { name: "\"a\"".into(), limit: 1000 }),
        (Tar::default().file("a", b"").folder("b/").file("c", b"").folder("d"), PackageError::TooManyEntries(3)),
        (
            Tar::default().file("manifest.yaml", &[0; 11]),
            PackageError::FileTooLarge { name: "\"manifest.yaml\"".into(), limit: 10 },
        ),
        (
            Tar::default().file("./checksums.txt", &[0; 21]),
            PackageError::FileTooLarge { name: "\"checksums.txt\"".into(), limit: 20 },
        ),
        (
            Tar::default().file("checksums.txt.sig", &[0; 31]),
            PackageError::FileTooLarge { name: "\"checksums.txt.sig\"".into(), limit: 30 },
        ),
    ] {
        assert_eq!(read_in(&tar.end(), 512, limits), Err(error));
    }
    let implied = Tar::default().file("a/b/c", b"").file("d", b"").end();
    assert_eq!(read_in(&implied, 512, limits), Err(PackageError::TooManyEntries(3)));
    let exact = Tar::default().file("a", &[0; 500]).file("b", &[0; 500]).folder("c/").end();
    assert!(read_in(&exact, 512, limits).is_ok());
}

#[test]
fn a_refused_archive_stays_refused() {
    let mut guard = TarGuard::new(Limits::default());
    assert!(guard.feed(&header("a", b'2', b"00000000000\0")).is_err());
    assert!(guard.feed(&Tar::default().file("a", b"").end()).is_err());
    assert!(guard.finish().is_err());
}

proptest! {
    #[test]
    fn random_bytes_get_a_verdict(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let _ = read(&bytes);
    }

    #[test]
    fn a_lawful_archive_with_damaged_bytes_gets_a_verdict(
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)
    ) {
        let mut bytes = package("1.0.0", &[("ui/a", b"x")]).pax(&pax_record("path", "ui/b")).file("b", b"y").end();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = read(&bytes);
    }

    #[test]
    fn damaged_headers_with_right_sums_get_a_verdict(at in 0usize..512, byte in any::<u8>()) {
        let mut block = header("ui/x", b'0', b"00000000000\0");
        block[at] = byte;
        sum_up(&mut block);
        let _ = read(&Tar::default().raw(&block).end());
    }
}
