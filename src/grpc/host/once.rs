//! The idempotency key of a call: metadata, so that the contract's messages stay as they are.
//!
//! What is done once for a key, and for how long, is `store::platform::once`'s part. A plugin that sends none has what
//! the contract says: a call that is repeated is done again (host-data.md §6.1).

use prost::Message;
use sha2::{Digest, Sha256};
use tonic::{Status, metadata::MetadataMap};

use super::data::Data;
use crate::{domain::package, platform::Once};

/// The metadata with the key.
pub const KEY: &str = "kandev-idempotency-key";
/// Longest key, in bytes.
const MAX_BYTES: usize = 128;

/// The key of a call, if it has one: 1 to [`MAX_BYTES`] visible ASCII characters. It belongs to the plugin; the same
/// key with another call or another message is another request.
pub fn of(data: &Data, rpc: &str, metadata: &MetadataMap, message: &impl Message) -> Result<Option<Once>, Status> {
    let mut given = metadata.get_all(KEY).iter();
    let Some(key) = given.next() else { return Ok(None) };
    let lawful = |key: &&str| (1..=MAX_BYTES).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
    let key = key.to_str().ok().filter(lawful).filter(|_| given.next().is_none()).ok_or_else(|| {
        Status::invalid_argument(format!("{KEY} must be given once, with 1 to {MAX_BYTES} visible ASCII characters"))
    })?;
    let fingerprint =
        Sha256::new().chain_update(rpc).chain_update([0]).chain_update(message.encode_to_vec()).finalize();
    Ok(Some(Once {
        scope: format!("plugin:{}", data.plugin),
        key: key.to_owned(),
        fingerprint: package::hex(&fingerprint.into()),
    }))
}
