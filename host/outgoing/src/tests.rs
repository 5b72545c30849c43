//! Requests to real servers on the loopback interface.

mod address;
mod body;
mod credentials;
mod hostile;
mod http2;
mod pooling;
mod proxy;
mod setup;
mod versions;
