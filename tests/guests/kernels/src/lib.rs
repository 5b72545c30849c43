//! What is computed to measure what metering costs: a plain function over `kernels`, which
//! `tests/inside` has as native code.

mod kernels;

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
            package test:kernels;
            world kernels {
                /// Computes. What comes of it does not depend on where it runs.
                export compute: func(kernel: string, size: u32) -> string;
            }
        ",
    });

    export!(Kernels with_types_in self);

    use super::Kernels;
}

struct Kernels;

impl bindings::Guest for Kernels {
    fn compute(kernel: String, size: u32) -> String {
        kernels::compute(&kernel, size).unwrap_or_else(|| "no such kernel".to_owned())
    }
}
