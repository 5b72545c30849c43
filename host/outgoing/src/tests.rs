//! Requests to real servers on the loopback interface.

mod address;
mod body;
mod hostile;
mod pooling;
mod proxy;
mod setup;
mod versions;
