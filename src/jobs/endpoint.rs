//! The address at which child processes of turns reach their tools.

use std::{
    net::SocketAddr,
    sync::{Mutex, PoisonError},
};

/// Empty until the process serves tools. With several workers in a process, the last one's address counts.
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
