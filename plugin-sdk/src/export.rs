//! The macro that exports a plugin.

/// Makes the crate a plugin that offers the listed tools, prompts, resources and completions.
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
    ($($offer:path),+ $(,)?) => {
        const _: () = $crate::__private::check_names(__toolbay_entries());

        /// What this plugin offers.
        #[doc(hidden)]
        pub const fn __toolbay_entries() -> &'static [$crate::__private::Entry] {
            const { &$crate::__private::entries!($($offer),+) }
        }

        #[cfg(target_family = "wasm")]
        #[allow(unsafe_code, reason = "an export of a component is one")]
        const _: () = {
            use $crate::bindings::exports::toolbay::plugin::{completion, prompts, resources, tools};

            struct Plugin;

            impl tools::Guest for Plugin {
                fn list_tools() -> ::std::vec::Vec<tools::ToolDefinition> {
                    $crate::bindings::list_tools(__toolbay_entries())
                }

                fn call_tool(
                    name: ::std::string::String,
                    arguments: ::std::string::String,
                ) -> ::core::result::Result<tools::Output, tools::Failure> {
                    let mut entries = __toolbay_entries();
                    // One step for each entry instead of a loop, so the entry is a constant for the
                    // compiler.
                    $(
                        const _: &str = ::core::stringify!($offer);
                        if let [entry, others @ ..] = entries {
                            if let ::core::option::Option::Some(answer) =
                                $crate::bindings::call_if_named(entry, &name, &arguments)
                            {
                                return answer;
                            }
                            entries = others;
                        }
                    )+
                    let _ = entries;
                    $crate::bindings::no_such_tool(&name)
                }
            }

            impl prompts::Guest for Plugin {
                fn list_prompts() -> ::std::vec::Vec<prompts::PromptDefinition> {
                    $crate::bindings::list_prompts(__toolbay_entries())
                }

                fn get_prompt(
                    name: ::std::string::String,
                    arguments: ::std::vec::Vec<(::std::string::String, ::std::string::String)>,
                ) -> ::core::result::Result<prompts::PromptOutput, prompts::Failure> {
                    $crate::bindings::get_prompt(__toolbay_entries(), &name, &arguments)
                }
            }

            impl resources::Guest for Plugin {
                fn list_resources() -> ::std::vec::Vec<resources::ResourceDefinition> {
                    $crate::bindings::list_resources(__toolbay_entries())
                }

                fn list_resource_templates() -> ::std::vec::Vec<resources::ResourceTemplate> {
                    $crate::bindings::list_resource_templates(__toolbay_entries())
                }

                fn read_resource(
                    uri: ::std::string::String,
                ) -> ::core::result::Result<::std::vec::Vec<resources::ResourceContents>, resources::Failure> {
                    $crate::bindings::read_resource(__toolbay_entries(), &uri)
                }
            }

            impl completion::Guest for Plugin {
                fn complete(
                    request: completion::CompletionRequest,
                ) -> ::core::result::Result<completion::Completions, completion::Failure> {
                    $crate::bindings::complete(__toolbay_entries(), request)
                }
            }

            $crate::bindings::export_world!(Plugin with_types_in $crate::bindings);
        };
    };
}
