//! Where the children of this process's turns reach their tools.

use std::{
    net::SocketAddr,
    sync::{Mutex, PoisonError},
};

/// Known once the process serves them. The last worker of a process counts.
#[derive(Debug, Default)]
pub struct Endpoint(Mutex<Option<SocketAddr>>);

impl Endpoint {
    pub fn open(&self, address: SocketAddr) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(address);
    }

    pub fn url(&self) -> Option<String> {
        let address = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        address.map(|address| format!("http://{address}/mcp"))
    }
}
