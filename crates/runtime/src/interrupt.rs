//! Stopping a call from outside.

use std::sync::Arc;

use tokio::sync::watch;

/// Stops a call; clones share it, and once set it stays set.
#[derive(Debug, Clone)]
pub struct Interrupt {
    sender: Arc<watch::Sender<bool>>,
}

impl Default for Interrupt {
    fn default() -> Self {
        Self::new()
    }
}

impl Interrupt {
    /// Makes one that is not set.
    pub fn new() -> Self {
        Self {
            sender: Arc::new(watch::Sender::new(false)),
        }
    }

    /// Stops every call that was given this one, and those that will be.
    pub fn set(&self) {
        self.sender.send_replace(true);
    }

    /// Tells whether it is set.
    pub fn is_set(&self) -> bool {
        *self.sender.borrow()
    }

    /// Waits until it is set.
    pub async fn wait(&self) {
        // The sender lives as long as this handle, so the wait cannot fail.
        let _ = self.sender.subscribe().wait_for(|set| *set).await;
    }
}
