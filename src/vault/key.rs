//! Keys of the vault: their text form, sealing and opening with them.
//!
//! AES-256-GCM with a random nonce for every write; what is sealed is bound to the entry's id and to the key's, so that
//! a row moved to another id does not open. Where keys are kept is `source`'s part.

use std::sync::Arc;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use secrecy::{ExposeSecret, SecretString, zeroize::Zeroizing};
use sha2::{Digest, Sha256};

/// Bytes of a key.
const KEY_BYTES: usize = 32;

/// What a ciphertext has beyond the text: the tag.
pub const TAG_BYTES: usize = 16;

/// Begins what a ciphertext is bound to; another version would be another form of it.
const CONTEXT: &str = "kandev-host vault 1";

/// Why a text holds no usable keys. Never quotes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyTextError {
    /// Neither hexadecimal nor base64 of 32 bytes.
    #[error("it must be 32 bytes, written as 64 hexadecimal digits or in base64")]
    Form,
    /// No key at all.
    #[error("it holds no key")]
    Empty,
    /// A key that everybody knows.
    #[error("it is all zeros, which is no secret; make one with `openssl rand -hex 32`")]
    Zero,
    /// One key twice.
    #[error("it holds the same key twice")]
    Double,
}

/// The system gives no random bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random bytes")]
pub struct NoRandom;

/// What a row holds of a secret.
#[derive(Clone)]
pub struct Sealed {
    pub key_id: String,
    pub nonce: Vec<u8>,
    pub ciphertext: Vec<u8>,
}

/// One key of 256 bits.
pub struct Key {
    id: String,
    cipher: LessSafeKey,
    bytes: Zeroizing<[u8; KEY_BYTES]>,
}

impl Key {
    /// A new one.
    pub fn random() -> Result<Self, NoRandom> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        aws_lc_rs::rand::fill(&mut *bytes).map_err(|_| NoRandom)?;
        Self::new(bytes).map_err(|_| NoRandom)
    }

    /// Reads one key.
    pub fn parse(text: &str) -> Result<Self, KeyTextError> {
        let text = text.trim();
        let bytes = hexadecimal(text).or_else(|| base64(text)).ok_or(KeyTextError::Form)?;
        Self::new(bytes)
    }

    fn new(bytes: Zeroizing<[u8; KEY_BYTES]>) -> Result<Self, KeyTextError> {
        if bytes.iter().all(|byte| *byte == 0) {
            return Err(KeyTextError::Zero);
        }
        let cipher = UnboundKey::new(&AES_256_GCM, &*bytes).map_err(|_| KeyTextError::Form)?;
        let digest = Sha256::new().chain_update("kandev-host vault key id").chain_update(*bytes).finalize();
        let id = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { id, cipher: LessSafeKey::new(cipher), bytes })
    }

    /// Tells keys apart and tells nothing about them: a part of a digest, 16 hexadecimal digits.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// 64 hexadecimal digits.
    fn text(&self) -> Zeroizing<String> {
        let mut text = Zeroizing::new(String::with_capacity(2 * KEY_BYTES));
        for byte in self.bytes.iter() {
            for digit in [byte >> 4, byte & 15] {
                text.push(char::from_digit(digit.into(), 16).unwrap_or_default());
            }
        }
        text
    }

    /// Encrypts `value` for the entry `id`.
    pub fn seal(&self, id: &str, value: &SecretString) -> Result<Sealed, NoRandom> {
        let mut nonce = [0; NONCE_LEN];
        aws_lc_rs::rand::fill(&mut nonce).map_err(|_| NoRandom)?;
        let value = value.expose_secret().as_bytes();
        let mut text = Vec::with_capacity(value.len() + TAG_BYTES);
        text.extend_from_slice(value);
        let sealed =
            self.cipher.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), self.bound_to(id), &mut text);
        // Fails beyond 64 GiB only.
        sealed.map_err(|_| NoRandom)?;
        Ok(Sealed { key_id: self.id.clone(), nonce: nonce.to_vec(), ciphertext: text })
    }

    /// Decrypts; `None` for what was not sealed with this key for this id, or was changed since.
    pub fn open(&self, id: &str, nonce: &[u8], ciphertext: &[u8]) -> Option<SecretString> {
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut text = Zeroizing::new(ciphertext.to_vec());
        let opened = self.cipher.open_in_place(nonce, self.bound_to(id), &mut text).ok()?;
        Some(std::str::from_utf8(opened).ok()?.to_owned().into())
    }

    fn bound_to(&self, id: &str) -> Aad<String> {
        Aad::from(format!("{CONTEXT}\0{}\0{id}", self.id))
    }
}

fn hexadecimal(text: &str) -> Option<Zeroizing<[u8; KEY_BYTES]>> {
    if text.len() != 2 * KEY_BYTES {
        return None;
    }
    let mut bytes = Zeroizing::new([0; KEY_BYTES]);
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        let digit = |at: usize| char::from(digits[at]).to_digit(16);
        *byte = u8::try_from(digit(0)? << 4 | digit(1)?).ok()?;
    }
    Some(bytes)
}

/// Either alphabet, padded or not.
fn base64(text: &str) -> Option<Zeroizing<[u8; KEY_BYTES]>> {
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    [&alphabet::STANDARD, &alphabet::URL_SAFE].into_iter().find_map(|alphabet| {
        // Room for more than a key has, so that a longer text is not cut to one.
        let mut decoded = Zeroizing::new([0; KEY_BYTES + 4]);
        let length = GeneralPurpose::new(alphabet, config).decode_slice(text, &mut *decoded).ok()?;
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        bytes.copy_from_slice(&decoded[..KEY_BYTES]);
        (length == KEY_BYTES).then_some(bytes)
    })
}

/// The keys that a host has, the current one first: the others still open what was sealed with them.
#[derive(Clone)]
pub struct KeyRing(Arc<[Arc<Key>]>);

impl KeyRing {
    /// A ring of one.
    pub fn of(key: impl Into<Arc<Key>>) -> Self {
        Self(Arc::new([key.into()]))
    }

    /// The same keys behind a new current one.
    pub fn led_by(&self, key: Arc<Key>) -> Self {
        let others = self.0.iter().filter(|other| other.id != key.id).cloned();
        Self(std::iter::once(key.clone()).chain(others).collect())
    }

    /// The current one alone.
    pub fn current_alone(&self) -> Self {
        Self::of(self.current().clone())
    }

    /// Reads keys separated by line breaks, commas or spaces, the current one first.
    pub fn parse(text: &str) -> Result<Self, KeyTextError> {
        let parts = text.split([',', '\n', '\r', ' ', '\t']).filter(|part| !part.is_empty());
        let keys = parts.map(|part| Key::parse(part).map(Arc::new)).collect::<Result<Vec<_>, _>>()?;
        let double = keys.iter().enumerate().any(|(n, key)| keys[..n].iter().any(|other| other.id == key.id));
        match keys.is_empty() {
            true => Err(KeyTextError::Empty),
            false if double => Err(KeyTextError::Double),
            false => Ok(Self(keys.into())),
        }
    }

    /// One key a line, each 64 hexadecimal digits.
    pub fn text(&self) -> Zeroizing<String> {
        let mut text = Zeroizing::new(String::with_capacity(self.0.len() * (2 * KEY_BYTES + 1)));
        for key in self.0.iter() {
            text.push_str(&key.text());
            text.push('\n');
        }
        text
    }

    /// The key for new entries.
    pub fn current(&self) -> &Arc<Key> {
        // Every constructor gives at least one.
        &self.0[0]
    }

    /// The key of this id.
    pub fn get(&self, id: &str) -> Option<&Arc<Key>> {
        self.0.iter().find(|key| key.id == id)
    }

    /// How many there are; at least one.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The ids in order, for people.
    pub fn ids(&self) -> String {
        self.0.iter().map(|key| key.id()).collect::<Vec<_>>().join(", ")
    }
}

impl std::fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|key| &key.id)).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEX: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    fn secret(text: &str) -> SecretString {
        text.to_owned().into()
    }

    #[test]
    fn a_key_is_read_in_hexadecimal_and_in_any_base64() {
        let id = Key::parse(HEX).unwrap().id().to_owned();
        assert_eq!(id.len(), 16);
        let upper = HEX.to_uppercase();
        for text in
            [&upper, " AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"]
        {
            assert_eq!(Key::parse(text).unwrap().id(), id, "{text}");
        }
        let both = ["//////////////////////////////////////////8=", "__________________________________________8"];
        let ids = both.map(|text| Key::parse(text).unwrap().id().to_owned());
        assert_eq!(ids[0], ids[1]);
    }

    #[test]
    fn what_is_no_key_is_refused_without_being_quoted() {
        let form = "it must be 32 bytes, written as 64 hexadecimal digits or in base64";
        for text in [
            "hunter2",
            &HEX[2..],
            &format!("{HEX}00"),
            "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCU=",
            &"é".repeat(32),
        ] {
            assert_eq!(Key::parse(text).map(drop).map_err(|error| error.to_string()), Err(form.to_owned()), "{text}");
        }
        for zero in ["0".repeat(64), format!("{}=", "A".repeat(43))] {
            assert_eq!(KeyRing::parse(&zero).map(drop), Err(KeyTextError::Zero), "{zero}");
        }
        assert_eq!(KeyRing::parse(" \n,").map(drop), Err(KeyTextError::Empty));
        assert_eq!(KeyRing::parse(&format!("{HEX},{HEX}")).map(drop), Err(KeyTextError::Double));
    }

    #[test]
    fn a_ring_survives_its_text_and_leads_with_its_first_key() {
        let old = Key::parse(HEX).unwrap();
        let old_id = old.id().to_owned();
        let ring = KeyRing::of(old).led_by(Arc::new(Key::random().unwrap()));
        let read = KeyRing::parse(&ring.text()).unwrap();
        assert_eq!((read.ids(), read.count()), (ring.ids(), 2));
        assert_ne!(read.current().id(), old_id);
        assert!(read.get(&old_id).is_some());
        assert_eq!(read.current_alone().count(), 1);
        assert_eq!(format!("{ring:?}"), format!("[{:?}, {old_id:?}]", ring.current().id()));
    }

    #[test]
    fn nothing_opens_under_another_id_another_key_or_changed() {
        let (key, other) = (Key::parse(HEX).unwrap(), Key::random().unwrap());
        let Sealed { key_id, nonce, ciphertext } = key.seal("a", &secret("hunter2")).unwrap();
        assert_eq!(key_id, key.id());
        assert_eq!(ciphertext.len(), "hunter2".len() + TAG_BYTES);
        assert_eq!(key.open("a", &nonce, &ciphertext).unwrap().expose_secret(), "hunter2");
        assert!(key.open("b", &nonce, &ciphertext).is_none());
        assert!(other.open("a", &nonce, &ciphertext).is_none());
        assert!(key.open("a", &nonce[1..], &ciphertext).is_none());
        assert!(key.open("a", &nonce, &[]).is_none());
        for at in 0..ciphertext.len() {
            let mut changed = ciphertext.clone();
            changed[at] ^= 1;
            assert!(key.open("a", &nonce, &changed).is_none(), "byte {at}");
        }
    }

    proptest! {
        #[test]
        fn any_text_survives_and_no_two_writes_look_the_same(value in "(?s).{0,100}", id in ".{0,20}") {
            let key = Key::parse(HEX).unwrap();
            let sealed = [(); 2].map(|()| key.seal(&id, &secret(&value)).unwrap());
            prop_assert_ne!(&sealed[0].nonce, &sealed[1].nonce);
            for Sealed { nonce, ciphertext, .. } in sealed {
                let opened = key.open(&id, &nonce, &ciphertext).unwrap();
                prop_assert_eq!(opened.expose_secret(), &value);
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in "(?s).{0,80}|[0-9a-fA-F,]{60,140}|[A-Za-z0-9+/_=-]{40,50}") {
            if let Ok(ring) = KeyRing::parse(&text) {
                prop_assert_eq!(KeyRing::parse(&ring.text()).unwrap().ids(), ring.ids());
            }
        }
    }
}
