//! Readiness of connections, reported by the kernel.

use std::os::fd::OwnedFd;
use std::time::Instant;

use anyhow::{Context, Result};
use rustix::event::{Timespec, epoll};

use super::wire::Wire;

/// The registered connections.
pub(crate) struct Poll {
    epoll: OwnedFd,
    /// For each connection, whether it waits to become writable.
    writing: Vec<bool>,
}

/// A connection that is ready.
pub(crate) struct Event {
    pub(crate) place: usize,
    pub(crate) can_read: bool,
}

impl Poll {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            writing: Vec::new(),
        })
    }

    /// Registers a connection for reading.
    pub(crate) fn watch(&mut self, wire: &Wire, place: usize) -> Result<()> {
        if self.writing.len() <= place {
            self.writing.resize(place + 1, false);
        }
        if let Some(writing) = self.writing.get_mut(place) {
            *writing = false;
        }
        epoll::add(
            &self.epoll,
            wire.reads_from(),
            epoll::EventData::new_u64(place as u64),
            epoll::EventFlags::IN,
        )?;
        if !wire.is_socket() {
            epoll::add(
                &self.epoll,
                wire.writes_to(),
                epoll::EventData::new_u64(place as u64),
                epoll::EventFlags::empty(),
            )?;
        }
        Ok(())
    }

    /// Sets whether a connection is registered for writing.
    pub(crate) fn wants_to_write(&mut self, wire: &Wire, place: usize, wants: bool) -> Result<()> {
        let Some(writing) = self
            .writing
            .get_mut(place)
            .filter(|writing| **writing != wants)
        else {
            return Ok(());
        };
        *writing = wants;
        let mut flags = if wire.is_socket() {
            epoll::EventFlags::IN
        } else {
            epoll::EventFlags::empty()
        };
        flags.set(epoll::EventFlags::OUT, wants);
        epoll::modify(
            &self.epoll,
            wire.writes_to(),
            epoll::EventData::new_u64(place as u64),
            flags,
        )?;
        Ok(())
    }

    /// Waits until a connection is ready, or until this time.
    pub(crate) fn wait(&mut self, until: Option<Instant>) -> Result<Vec<Event>> {
        let mut events = Vec::with_capacity(self.writing.len().max(2));
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let timeout = left
            .map(Timespec::try_from)
            .transpose()
            .context("too long")?;
        match epoll::wait(
            &self.epoll,
            rustix::buffer::spare_capacity(&mut events),
            timeout.as_ref(),
        ) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context("failed to wait"),
        }
        let told = |event: &epoll::Event| {
            // The end of a connection is detected by reading.
            let readable = epoll::EventFlags::IN | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
            let flags = event.flags;
            let data = event.data;
            Some(Event {
                place: usize::try_from(data.u64()).ok()?,
                can_read: flags.intersects(readable),
            })
        };
        Ok(events.iter().filter_map(told).collect())
    }
}
