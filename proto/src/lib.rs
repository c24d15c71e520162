//! `kandev.plugin.v1` compiled for Rust (contract/wire.md): both services, all messages, the file's descriptors,
//! and the conversion between protobuf `Struct` and JSON.
//!
//! Shapes only: nothing here decides or does I/O.

mod json;

pub use json::{json_from_struct, json_from_value, struct_from_json, value_from_json};

/// The generated package.
pub mod v1 {
    #![expect(missing_docs, reason = "generated; documented in plugin.proto")]
    tonic::include_proto!("kandev.plugin.v1");
}

/// The serialised `FileDescriptorSet` of `plugin.proto` and what it imports.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
