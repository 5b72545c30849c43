//! Detection of WebAssembly GC and exceptions, and limits on type definitions. Runs in the
//! compiler child process.
//!
//! The engine stores each type while the component is loaded, in several hundred bytes. A file of a
//! few megabytes can define millions of types.

use toolbay_model::text::format_thousands;
use wasmparser::{BinaryReaderError, CompositeInnerType, Parser, Payload, SubType, TypeRef};

/// Maximum number of types that the core modules of a component define. Large programs have a few
/// thousand.
const MAX_DEFINED_TYPES: usize = 100_000;

/// Maximum number of members of all types: fields, parameters and results.
const MAX_TYPE_MEMBERS: usize = 1_000_000;

/// The WebAssembly proposals that the core modules of a component use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WasmProposals {
    type_count: usize,
    member_count: usize,
    /// True if it uses garbage-collected objects.
    has_gc: bool,
    has_exceptions: bool,
}

impl WasmProposals {
    /// Determines the proposals that a component uses.
    ///
    /// # Errors
    ///
    /// Returns a message if it defines too many types.
    pub(crate) fn detect(component: &[u8]) -> Result<Self, String> {
        let mut proposals = Self::default();
        // The compiler rejects a component that cannot be parsed.
        proposals.read(component).unwrap_or_default();
        let too_many = |n: usize, items: &str, limit: usize| {
            let [count_text, limit_text] = [n, limit].map(|n| format_thousands(n as u64));
            Err(format!(
                "defines {count_text} {items} or more, but at most {limit_text} are allowed"
            ))
        };
        if proposals.type_count > MAX_DEFINED_TYPES {
            too_many(
                proposals.type_count,
                "types in its core modules",
                MAX_DEFINED_TYPES,
            )
        } else if proposals.member_count > MAX_TYPE_MEMBERS {
            too_many(
                proposals.member_count,
                "members of types in its core modules",
                MAX_TYPE_MEMBERS,
            )
        } else {
            Ok(proposals)
        }
    }

    /// Returns whether it uses garbage-collected objects.
    pub(crate) fn uses_gc(&self) -> bool {
        self.has_gc
    }

    /// Returns the names of the used proposals, for people.
    pub(crate) fn names(&self) -> Vec<String> {
        let names = [
            (self.has_gc, "WebAssembly GC"),
            (self.has_exceptions, "exceptions"),
        ];
        names
            .into_iter()
            .filter(|(is_used, _)| *is_used)
            .map(|(_, name)| name.to_owned())
            .collect()
    }

    fn read(&mut self, component: &[u8]) -> Result<(), BinaryReaderError> {
        for payload in Parser::new(0).parse_all(component) {
            match payload? {
                Payload::TypeSection(groups) => {
                    for group in groups {
                        group?.types().for_each(|ty| self.add(ty));
                        if self.type_count > MAX_DEFINED_TYPES
                            || self.member_count > MAX_TYPE_MEMBERS
                        {
                            return Ok(());
                        }
                    }
                }
                Payload::ImportSection(imports) => {
                    for import in imports.into_imports() {
                        self.has_exceptions |= matches!(import?.ty, TypeRef::Tag(_));
                    }
                }
                Payload::TagSection(tags) => self.has_exceptions |= tags.count() > 0,
                _ => {}
            }
        }
        Ok(())
    }

    fn add(&mut self, ty: &SubType) {
        self.type_count += 1;
        self.member_count += match &ty.composite_type.inner {
            CompositeInnerType::Func(function) => {
                function.params().len() + function.results().len()
            }
            CompositeInnerType::Struct(fields) => {
                self.has_gc = true;
                fields.fields.len()
            }
            CompositeInnerType::Array(_) => {
                self.has_gc = true;
                1
            }
            CompositeInnerType::Cont(_) => 1,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proposals(module: &str) -> Result<WasmProposals, String> {
        WasmProposals::detect(
            &wat::parse_str(format!("(component (core module {module}))")).unwrap(),
        )
    }

    #[test]
    fn used_proposals_are_named() {
        let names = |module| proposals(module).unwrap().names();
        assert!(names("(func (param i32) (result i64) i64.const 1) (table 1 funcref)").is_empty());
        assert_eq!(names("(type (array i8))"), ["WebAssembly GC"]);
        assert_eq!(names("(tag (param i32))"), ["exceptions"]);
        assert_eq!(names(r#"(import "a" "b" (tag))"#), ["exceptions"]);
        assert_eq!(
            names("(type $s (struct (field i32))) (tag (param (ref $s)))"),
            ["WebAssembly GC", "exceptions"]
        );
    }

    #[test]
    fn types_and_their_members_are_bounded() {
        let types = |count: usize, fields: usize| {
            let fields = "(field i32)".repeat(fields);
            // Each type is distinct because it has another index in its group.
            let one = format!("(type (struct {fields}))");
            proposals(&format!("(rec {})", one.repeat(count)))
        };
        assert!(types(1000, 1000).is_ok());
        assert_eq!(
            types(101, 9999).unwrap_err(),
            "defines 1,009,899 members of types in its core modules or more, but at most 1,000,000 are allowed"
        );
        assert!(
            types(100_001, 0)
                .unwrap_err()
                .starts_with("defines 100,001 types in its core modules or more")
        );
    }
}
