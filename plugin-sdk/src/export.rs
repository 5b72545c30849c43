//! The list of a plugin's tools.

/// Makes the crate a plugin that offers the listed tools.
///
/// ```
/// use toolbay_plugin::prelude::*;
///
/// mod animals {
///     use toolbay_plugin::prelude::*;
///
///     /// Says what a cow says.
///     #[tool(read_only)]
///     pub fn moo() -> &'static str {
///         "moo"
///     }
/// }
///
/// /// Answers.
/// #[tool(read_only)]
/// fn ping() -> &'static str {
///     "pong"
/// }
///
/// export!(ping, animals::moo);
/// # fn main() {}
/// ```
///
/// Use it once per crate, at the root. Two tools with the same name do not compile:
///
/// ```compile_fail,E0080
/// use toolbay_plugin::prelude::*;
///
/// /// Answers.
/// #[tool]
/// fn ping() {}
///
/// /// Answers as well.
/// #[tool(name = "ping")]
/// fn pong() {}
///
/// export!(ping, pong);
/// # fn main() {}
/// ```
///
/// On targets other than WebAssembly it exports nothing, so `cargo test` runs on your machine.
#[macro_export]
macro_rules! export {
    ($($tool:path),+ $(,)?) => {
        const _: () = $crate::__private::check_names(__toolbay_tools());

        /// The tools of this plugin.
        #[doc(hidden)]
        pub const fn __toolbay_tools() -> &'static [$crate::__private::Entry] {
            const { &$crate::__private::entries!($($tool),+) }
        }

        #[cfg(target_family = "wasm")]
        #[allow(unsafe_code, reason = "an export of a component is one")]
        const _: () = {
            use $crate::bindings::exports::toolbay::plugin::tools;

            struct Plugin;

            impl tools::Guest for Plugin {
                fn list_tools() -> ::std::vec::Vec<tools::ToolDefinition> {
                    $crate::bindings::list_tools(__toolbay_tools())
                }

                fn call_tool(
                    name: ::std::string::String,
                    arguments: ::std::string::String,
                ) -> ::core::result::Result<tools::Output, tools::Failure> {
                    $crate::bindings::call_tool(__toolbay_tools(), &name, &arguments)
                }
            }

            $crate::bindings::export_world!(Plugin with_types_in $crate::bindings);
        };
    };
}
