//! Compiles go-plugin's own services in pure Rust (protox), so that building needs no protoc installed.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto/goplugin.proto");
    let descriptors = protox::compile(["goplugin.proto"], ["proto"])?;
    tonic_prost_build::configure().bytes(".plugin.StdioData").compile_fds(descriptors)?;
    Ok(())
}
