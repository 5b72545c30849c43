//! Plain functions that benchmarks call. Each is a tool.

#[allow(
    unsafe_code,
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::pedantic,
    clippy::allow_attributes_without_reason,
    reason = "generated code"
)]
mod bindings {
    wit_bindgen::generate!({
        inline: "
            package test:echo;
            world echo {
                /// Returns the message.
                export echo: func(message: string) -> string;
                /// Computes for so many rounds.
                export burn: func(rounds: u32) -> string;
            }
        ",
    });

    export!(Echo with_types_in self);

    use super::Echo;
}

struct Echo;

impl bindings::Guest for Echo {
    fn echo(message: String) -> String {
        message
    }

    /// The generator of Park and Miller, so many steps of it.
    fn burn(rounds: u32) -> String {
        (0..rounds)
            .fold(1_u64, |number, _| number * 48_271 % 2_147_483_647)
            .to_string()
    }
}
