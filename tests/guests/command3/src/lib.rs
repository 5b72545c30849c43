//! A command for WASI 0.3: it answers with what it was given on standard input, and fails if that
//! says so.

#[allow(
    unsafe_code,
    missing_docs,
    clippy::all,
    clippy::pedantic,
    clippy::allow_attributes_without_reason,
    reason = "generated code"
)]
mod bindings {
    wit_bindgen::generate!({ path: "../wasi3/wit", world: "command", generate_all });
    export!(Command with_types_in self);
    pub(crate) struct Command;
}

use bindings::exports::wasi::cli::run::Guest;
use bindings::wasi::cli::{stderr, stdin, stdout};
use bindings::{Command, wit_stream};

impl Guest for Command {
    async fn run() -> Result<(), ()> {
        let (stream, ended) = stdin::read_via_stream();
        let heard = stream.collect().await;
        ended.await.map_err(drop)?;
        let is_bad = heard.windows(3).any(|word| word == b"bad");
        let (mut writer, reader) = wit_stream::new();
        let written = if is_bad {
            stderr::write_via_stream(reader)
        } else {
            stdout::write_via_stream(reader)
        };
        writer.write_all(heard).await;
        drop(writer);
        written.await.map_err(drop)?;
        if is_bad { Err(()) } else { Ok(()) }
    }
}
