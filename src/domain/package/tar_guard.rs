//! A strict pass over the bytes of a tar archive, in front of the archive reader.
//!
//! Fed with the same bytes in the same order, it follows the structure on its own, applies every rule about headers,
//! names, sizes and counts, and hands out the members it saw. Whoever unpacks compares them with what the archive
//! reader reports, so that there are never two readings of one archive. Memory is bounded by [`Limits::files`] names
//! and one extension header.

use std::collections::VecDeque;

use super::Limits;
use super::error::PackageError;
use super::names::NameSet;
use super::path::EntryPath;
use super::tar_header::{self, BLOCK, Header, Kind, Pax};
use crate::domain::clean::quote;

/// Largest PAX or long-name header, in bytes; names end at 1 KiB, so this leaves room for foreign records.
const MAX_EXTENSION_BYTES: u64 = 64 * 1024;

/// Most zero bytes after the end; archivers pad to their record size, usually 10 KiB.
const MAX_PADDING_BYTES: u64 = 1024 * 1024;

/// An entry of the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The name as the archive spells it, for comparing with another reader.
    pub raw_name: Vec<u8>,
    /// The clean path; `None` for the root folder.
    pub path: Option<EntryPath>,
    /// Whether it is a folder; else it is a regular file.
    pub folder: bool,
    /// Size in bytes.
    pub size: u64,
}

#[derive(Debug)]
enum State {
    /// Collecting a header block.
    Header,
    /// Collecting the data of an extension header, never empty; then the padding.
    Extension { kind: Kind, left: u64, padding: u64 },
    /// Passing over data and padding.
    Data { left: u64 },
    /// After the first zero block, counting zeros.
    End { zeros: u64 },
    /// A rule was broken; nothing more is read.
    Failed,
}

/// The strict pass. See the module.
#[derive(Debug)]
pub struct TarGuard {
    limits: Limits,
    state: State,
    buffer: Vec<u8>,
    long_name: Option<Vec<u8>>,
    pax: Option<Pax>,
    names: NameSet,
    entries: usize,
    expanded: u64,
    members: VecDeque<Member>,
}

impl TarGuard {
    /// A guard at the start of an archive.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            state: State::Header,
            buffer: Vec::with_capacity(BLOCK),
            long_name: None,
            pax: None,
            names: NameSet::default(),
            entries: 0,
            expanded: 0,
            members: VecDeque::new(),
        }
    }

    /// Takes the next bytes of the archive. After an error every further call fails.
    ///
    /// # Errors
    /// The first broken rule.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<(), PackageError> {
        while !bytes.is_empty() {
            match self.step(bytes) {
                Ok(taken) => bytes = &bytes[taken..],
                Err(error) => {
                    self.state = State::Failed;
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// To be called at the end of the bytes.
    ///
    /// # Errors
    /// [`PackageError::BadArchive`] when the archive ends inside an entry.
    pub fn finish(&self) -> Result<(), PackageError> {
        let complete = match self.state {
            State::Header => self.buffer.is_empty() && self.entries > 0,
            State::End { .. } => true,
            State::Extension { .. } | State::Data { .. } | State::Failed => false,
        };
        if complete && self.long_name.is_none() && self.pax.is_none() {
            return Ok(());
        }
        Err(PackageError::bad_archive("the archive is truncated"))
    }

    /// The oldest member not yet taken; it is there as soon as its header was fed.
    pub fn take_member(&mut self) -> Option<Member> {
        self.members.pop_front()
    }

    /// Consumes a non-empty part of `bytes` and returns its length.
    fn step(&mut self, bytes: &[u8]) -> Result<usize, PackageError> {
        match &mut self.state {
            State::Header => {
                let taken = bytes.len().min(BLOCK - self.buffer.len());
                self.buffer.extend_from_slice(&bytes[..taken]);
                if self.buffer.len() == BLOCK {
                    self.block()?;
                }
                Ok(taken)
            }
            State::Extension { kind, left, padding } => {
                let taken = upto(bytes, *left);
                self.buffer.extend_from_slice(&bytes[..taken]);
                *left -= taken as u64;
                if *left == 0 {
                    let (kind, padding) = (*kind, *padding);
                    self.extension(kind)?;
                    self.state = skip(padding);
                }
                Ok(taken)
            }
            State::Data { left } => {
                let taken = upto(bytes, *left);
                *left -= taken as u64;
                if *left == 0 {
                    self.state = State::Header;
                }
                Ok(taken)
            }
            State::End { zeros } => {
                *zeros += bytes.len() as u64;
                if *zeros > MAX_PADDING_BYTES || bytes.iter().any(|b| *b != 0) {
                    return Err(PackageError::bad_archive("data after the end of the archive"));
                }
                Ok(bytes.len())
            }
            State::Failed => Err(PackageError::bad_archive("an earlier entry was refused")),
        }
    }

    /// Handles a complete header block.
    fn block(&mut self) -> Result<(), PackageError> {
        let buffer = std::mem::take(&mut self.buffer);
        let block: &[u8; BLOCK] = buffer.as_slice().try_into().map_err(|_| PackageError::bad_archive("short block"))?;
        if block.iter().all(|b| *b == 0) {
            if self.long_name.is_some() || self.pax.is_some() {
                return Err(PackageError::bad_archive("an extension header without an entry"));
            }
            self.state = State::End { zeros: 0 };
            return Ok(());
        }
        let header = tar_header::parse(block)?;
        match header.kind {
            Kind::Pax | Kind::LongName => self.begin_extension(&header),
            Kind::File | Kind::Folder => self.member(header),
        }
    }

    fn begin_extension(&mut self, header: &Header) -> Result<(), PackageError> {
        let repeated = match header.kind {
            Kind::Pax => self.pax.is_some(),
            _ => self.long_name.is_some(),
        };
        if repeated {
            return Err(PackageError::bad_archive("two extension headers of one kind for one entry"));
        }
        if header.size == 0 || header.size > MAX_EXTENSION_BYTES {
            return Err(PackageError::bad_archive("an extension header is empty or longer than 65536 bytes"));
        }
        self.state = State::Extension { kind: header.kind, left: header.size, padding: padding(header.size) };
        Ok(())
    }

    /// Handles the complete data of an extension header.
    fn extension(&mut self, kind: Kind) -> Result<(), PackageError> {
        let data = std::mem::take(&mut self.buffer);
        if kind == Kind::Pax {
            self.pax = Some(tar_header::parse_pax(&data)?);
            return Ok(());
        }
        let name = data.strip_suffix(&[0]).unwrap_or(&data);
        if name.contains(&0) {
            return Err(PackageError::bad_archive("a long name holds a NUL"));
        }
        self.long_name = Some(name.to_vec());
        Ok(())
    }

    fn member(&mut self, header: Header) -> Result<(), PackageError> {
        let pax = self.pax.take().unwrap_or_default();
        let raw_name = match (self.long_name.take(), pax.path) {
            (Some(_), Some(_)) => return Err(PackageError::bad_archive("an entry has two long names")),
            (Some(name), None) | (None, Some(name)) => name,
            (None, None) => header.name,
        };
        if pax.size.is_some_and(|size| size != header.size) {
            return Err(PackageError::bad_archive("the PAX size and the header size of an entry disagree"));
        }
        self.entries += 1;
        if self.entries > self.limits.files {
            return Err(PackageError::TooManyEntries(self.limits.files));
        }
        let folder = header.kind == Kind::Folder;
        let path = if folder { self.folder(&raw_name, header.size)? } else { Some(self.file(&raw_name, header.size)?) };
        // Folders that are only implied by a file's name cost as much as named ones.
        if self.names.len() > self.limits.files {
            return Err(PackageError::TooManyEntries(self.limits.files));
        }
        self.members.push_back(Member { raw_name, path, folder, size: header.size });
        self.state = skip(header.size + padding(header.size));
        Ok(())
    }

    fn folder(&mut self, raw_name: &[u8], size: u64) -> Result<Option<EntryPath>, PackageError> {
        if size > 0 {
            return Err(PackageError::bad_archive("a folder has data"));
        }
        let path = EntryPath::of_folder(raw_name)?;
        path.iter().try_for_each(|path| self.names.add_folder(path))?;
        Ok(path)
    }

    fn file(&mut self, raw_name: &[u8], size: u64) -> Result<EntryPath, PackageError> {
        let path = EntryPath::of_file(raw_name)?;
        let limit = self.limits.of_file(path.as_str());
        if size > limit {
            return Err(PackageError::FileTooLarge { name: quote(path.as_str()), limit });
        }
        self.expanded += size;
        if self.expanded > self.limits.expanded {
            return Err(PackageError::ExpandedTooLarge(self.limits.expanded));
        }
        self.names.add_file(&path)?;
        Ok(path)
    }
}

/// How many of `bytes` belong to the next `left` ones.
fn upto(bytes: &[u8], left: u64) -> usize {
    usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()))
}

fn padding(size: u64) -> u64 {
    size.next_multiple_of(BLOCK as u64) - size
}

fn skip(left: u64) -> State {
    if left == 0 { State::Header } else { State::Data { left } }
}
