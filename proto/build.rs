//! Compiles `plugin.proto` in pure Rust (protox), so that building needs no protoc installed.

use std::{env, error::Error, fs, path::PathBuf};

use prost::Message;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=kandev/plugin/v1/plugin.proto");
    let descriptors = protox::compile(["kandev/plugin/v1/plugin.proto"], ["."])?;
    let out = PathBuf::from(env::var("OUT_DIR")?).join("descriptors.bin");
    fs::write(out, descriptors.encode_to_vec())?;
    // Default stubs: an RPC that a plugin (or a test's host) does not write answers Unimplemented, as in Go.
    tonic_prost_build::configure().bytes(".kandev.plugin.v1").generate_default_stubs(true).compile_fds(descriptors)?;
    Ok(())
}
