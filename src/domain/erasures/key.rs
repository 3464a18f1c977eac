//! The key that signs receipts: Ed25519, in a file beside the service. No table holds it, so that write access to the database is not
//! enough to sign a receipt.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};

/// The key that signs receipts.
#[derive(Debug)]
pub struct Key(Ed25519KeyPair);

#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    #[error("cannot read or create the key file `{}`", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error(
        "every user of this machine can read the key file `{}`: run chmod 600, or create a new key",
        path.display()
    )]
    Readable { path: PathBuf },
    #[error(
        "the key file `{}` has no Ed25519 key in PEM: `openssl genpkey -algorithm ed25519` creates one",
        path.display()
    )]
    Format { path: PathBuf },
}

const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const END: &str = "-----END PRIVATE KEY-----";
/// PKCS#8 of an Ed25519 key is this and its 32 bytes (RFC 8410).
const PKCS8_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];
/// Bits of the file's mode for users other than its owner and its group.
const OTHERS_MODE_BITS: u32 = 0o007;

impl Key {
    /// Reads the key, or makes one where there is no file yet.
    pub fn open_or_create(path: &Path) -> Result<Self, KeyError> {
        match Self::open(path)? {
            Some(key) => Ok(key),
            None => {
                create(path).map_err(|source| KeyError::File { path: path.to_owned(), source })?;
                Self::open(path)?.ok_or_else(|| KeyError::Format { path: path.to_owned() })
            }
        }
    }

    /// Reads the key. `None`: there is no file.
    pub fn open(path: &Path) -> Result<Option<Self>, KeyError> {
        let failed = |source| KeyError::File { path: path.to_owned(), source };
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(failed)?,
        };
        if file.metadata().map_err(failed)?.permissions().mode() & OTHERS_MODE_BITS != 0 {
            return Err(KeyError::Readable { path: path.to_owned() });
        }
        let text = io::read_to_string(file).map_err(failed)?;
        parse(&text).map(Some).ok_or_else(|| KeyError::Format { path: path.to_owned() })
    }

    pub fn sign(&self, statement: &[u8]) -> Vec<u8> {
        self.0.sign(statement).as_ref().to_vec()
    }

    /// Returns true if this key has made the signature.
    pub fn has_signed(&self, statement: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, self.public_key()).verify(statement, signature).is_ok()
    }

    pub fn public_key(&self) -> &[u8] {
        self.0.public_key().as_ref()
    }

    /// Formats the public key as people compare it.
    pub fn public_text(&self) -> String {
        BASE64_STANDARD.encode(self.public_key())
    }
}

fn parse(text: &str) -> Option<Key> {
    let (_, rest) = text.split_once(BEGIN)?;
    let (body, _) = rest.split_once(END)?;
    let body: String = body.split_whitespace().collect();
    let der = BASE64_STANDARD.decode(body).ok()?;
    Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).ok().map(Key)
}

/// Creates the key file. Race: two processes create it at the same time. The file appears as a whole, and the second process finds it.
fn create(path: &Path) -> io::Result<()> {
    let seed: [u8; 32] = rand::random();
    let pem = format!(
        "{BEGIN}\n{}\n{END}\n",
        BASE64_STANDARD.encode([&PKCS8_PREFIX[..], &seed].concat())
    );
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let draft = path.with_extension(format!("{}.new", uuid::Uuid::new_v4()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    let linked = file.write_all(pem.as_bytes()).and_then(|()| file.sync_all());
    let linked = linked.and_then(|()| fs::hard_link(&draft, path));
    fs::remove_file(&draft)?;
    match linked {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_created_once_and_then_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("below/key.pem");
        assert!(Key::open(&path).unwrap().is_none());
        let key = Key::open_or_create(&path).unwrap();
        let again = Key::open_or_create(&path).unwrap();
        assert_eq!(key.public_key(), again.public_key());
        assert!(again.has_signed(b"one", &key.sign(b"one")));
        assert!(!again.has_signed(b"another", &key.sign(b"one")));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_world_readable_or_empty_key_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key.pem");
        Key::open_or_create(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(Key::open(&path), Err(KeyError::Readable { .. })));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(Key::open(&path).is_ok());
        fs::write(&path, format!("{BEGIN}\nAAAA\n{END}\n")).unwrap();
        assert!(matches!(Key::open(&path), Err(KeyError::Format { .. })));
    }
}
