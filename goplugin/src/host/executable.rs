//! Telling why a file cannot be run on this machine, before it is tried.
//!
//! Owns reading the first bytes of the file. The kernel's own answer is one "exec format error" for all of these, and
//! the C library then hands the file to a shell, whose complaints are no better.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a file cannot be run.
#[derive(Debug, Error)]
pub enum ExecutableError {
    /// There is no such file.
    #[error("the program {} does not exist; install the package again", .path.display())]
    Missing {
        /// The program.
        path: PathBuf,
    },
    /// It is a folder or a device.
    #[error("{} is not a regular file; the package must name its program there", .path.display())]
    NotAFile {
        /// The program.
        path: PathBuf,
    },
    /// No execute permission for anybody.
    #[error("the program {} has mode {mode:04o} and is not executable; make it so with chmod +x", .path.display())]
    NotExecutable {
        /// The program.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A program for another processor.
    #[error(
        "the program {} is built for {found}, this machine is {wanted}; install the package for {wanted}",
        .path.display()
    )]
    WrongArchitecture {
        /// The program.
        path: PathBuf,
        /// The processor it is for.
        found: String,
        /// This machine's processor.
        wanted: &'static str,
    },
    /// Neither an ELF program nor a script that names its interpreter.
    #[error(
        "{} is {found}, not a program for linux; the package must name an ELF program or a #! script there",
        .path.display()
    )]
    WrongFormat {
        /// The file.
        path: PathBuf,
        /// What it looks like.
        found: &'static str,
    },
    /// The file cannot be read.
    #[error("cannot read the program {}: {source}", .path.display())]
    Unreadable {
        /// The program.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// What the first bytes of a file say it is.
#[derive(Debug, PartialEq, Eq)]
enum Format {
    Script,
    Elf { machine: u16 },
    Other(&'static str),
}

/// What a file that can be run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A text that names its interpreter.
    Script,
    /// What the kernel runs by itself; also a file that only the kernel may read.
    Program,
}

/// Fails when `path`, or `file` if it is open already, certainly cannot be run here. Blocks on the file system.
pub(crate) fn check(path: &Path, file: Option<&File>) -> Result<Kind, ExecutableError> {
    let path = path.to_path_buf();
    let metadata = match file.map_or_else(|| fs::metadata(&path), File::metadata) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(ExecutableError::Missing { path }),
        Err(source) => return Err(ExecutableError::Unreadable { path, source }),
    };
    if !metadata.is_file() {
        return Err(ExecutableError::NotAFile { path });
    }
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & 0o111 == 0 {
        return Err(ExecutableError::NotExecutable { path, mode });
    }
    let mut start = Vec::with_capacity(ELF_MACHINE_END);
    // A program may be executable without being readable; then only the kernel can tell.
    let Ok(mut file) = file.map_or_else(|| File::open(&path), File::try_clone) else { return Ok(Kind::Program) };
    // A clone shares its place in the file, and whoever opened it may have read it.
    let read = file.rewind().and_then(|()| file.take(ELF_MACHINE_END as u64).read_to_end(&mut start));
    read.map_err(|source| ExecutableError::Unreadable { path: path.clone(), source })?;
    match (recognise(&start), THIS_MACHINE) {
        (Format::Script, _) => Ok(Kind::Script),
        (Format::Elf { machine }, Some((wanted, name))) if machine != wanted => {
            Err(ExecutableError::WrongArchitecture { path, found: machine_name(machine), wanted: name })
        }
        (Format::Elf { .. }, _) => Ok(Kind::Program),
        (Format::Other(found), _) => Err(ExecutableError::WrongFormat { path, found }),
    }
}

/// Bytes from the start of an ELF file to the end of `e_machine`.
const ELF_MACHINE_END: usize = 20;

const AMD64: u16 = 62;
const ARM64: u16 = 183;

/// `e_machine` of programs for this machine, with its name in package names.
const THIS_MACHINE: Option<(u16, &str)> = if cfg!(target_arch = "x86_64") {
    Some((AMD64, "amd64"))
} else if cfg!(target_arch = "aarch64") {
    Some((ARM64, "arm64"))
} else {
    None
};

fn recognise(start: &[u8]) -> Format {
    match *start {
        [b'#', b'!', ..] => Format::Script,
        // Byte 5 says in which order the two bytes of the machine are.
        [0x7f, b'E', b'L', b'F', _, order, .., low, high] if start.len() == ELF_MACHINE_END => {
            let bytes = [low, high];
            Format::Elf { machine: if order == 2 { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) } }
        }
        [b'M', b'Z', ..] => Format::Other("a windows program"),
        [0xcf | 0xce, 0xfa, 0xed, 0xfe, ..] | [0xca, 0xfe, 0xba, 0xbe, ..] => Format::Other("a macos program"),
        [] => Format::Other("an empty file"),
        _ => Format::Other("a file of an unknown format"),
    }
}

fn machine_name(machine: u16) -> String {
    let name = match machine {
        3 => "x86 (32 bit)",
        8 => "mips",
        20 => "powerpc",
        21 => "ppc64",
        22 => "s390x",
        40 => "arm (32 bit)",
        AMD64 => "amd64",
        ARM64 => "arm64",
        243 => "riscv",
        258 => "loongarch",
        other => return format!("an unknown processor (ELF machine {other})"),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::OpenOptionsExt;

    use super::*;

    fn elf(order: u8, machine: [u8; 2]) -> Vec<u8> {
        let mut bytes = vec![0x7f, b'E', b'L', b'F', 2, order, 1];
        bytes.resize(18, 0);
        bytes.extend(machine);
        bytes
    }

    fn verdict(content: &[u8], mode: u32) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("program");
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&path).expect("a file");
        io::Write::write_all(&mut file, content).expect("written");
        let text = check(&path, None).map_or_else(|error| error.to_string(), |kind| format!("{kind:?}"));
        let file = File::open(&path).expect("opened");
        let opened = check(&path, Some(&file)).map_or_else(|error| error.to_string(), |kind| format!("{kind:?}"));
        assert_eq!(text, opened);
        text.replace(&folder.path().display().to_string(), "")
    }

    #[test]
    fn this_test_program_and_scripts_can_be_run() {
        let this = check(&std::env::current_exe().expect("a path"), None).expect("this very program runs");
        assert_eq!((this, verdict(b"#!/bin/sh\n", 0o755).as_str()), (Kind::Program, "Script"));
    }

    #[test]
    fn each_reason_has_its_own_text() {
        let (foreign, wanted) = if cfg!(target_arch = "aarch64") { (AMD64, "arm64") } else { (ARM64, "amd64") };
        let name = machine_name(foreign);
        assert_eq!(
            verdict(&elf(1, foreign.to_le_bytes()), 0o755),
            format!(
                "the program /program is built for {name}, this machine is {wanted}; install the package for {wanted}"
            ),
        );
        assert!(verdict(&elf(2, [0, 22]), 0o755).contains("built for s390x"));
        assert!(verdict(&elf(1, [0xff, 0xff]), 0o755).contains("(ELF machine 65535)"));
        assert_eq!(
            verdict(b"hello world", 0o755),
            "/program is a file of an unknown format, not a program for linux; the package must name an ELF program or \
             a #! script there",
        );
        assert!(verdict(b"MZ", 0o755).contains("is a windows program"));
        assert!(verdict(b"\xcf\xfa\xed\xfe", 0o755).contains("is a macos program"));
        assert!(verdict(b"", 0o755).contains("is an empty file"));
        assert_eq!(
            verdict(b"#!/bin/sh\n", 0o644),
            "the program /program has mode 0644 and is not executable; make it so with chmod +x",
        );
        let missing = check(Path::new("/nowhere/program"), None).expect_err("there is no such file");
        assert_eq!(missing.to_string(), "the program /nowhere/program does not exist; install the package again");
        let folder = check(Path::new("/"), None).expect_err("a folder is no program");
        assert_eq!(folder.to_string(), "/ is not a regular file; the package must name its program there");
    }
}
