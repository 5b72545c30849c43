//! The WIT types of a plain function as a tree. Schemas, values and WIT text are derived from it.

use std::fmt;

use wasmtime::component::Type;

/// Maximum number of types in a function's signature, including nested ones. A component can define
/// a type whose size doubles at each of thirty levels in only a few bytes.
const MAX_TYPES: usize = 1_000;

/// Maximum nesting depth of types.
const MAX_TYPE_DEPTH: usize = 16;

/// A WIT type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WitType {
    Bool,
    Integer(WitInteger),
    Float32,
    Float64,
    Char,
    String,
    /// A `list<u8>`, which is base64 in JSON.
    Bytes,
    List(Box<WitType>),
    Record(Vec<(String, WitType)>),
    Tuple(Vec<WitType>),
    Variant(Vec<(String, Option<WitType>)>),
    Enum(Vec<String>),
    Option(Box<WitType>),
    Result(Option<Box<WitType>>, Option<Box<WitType>>),
    Flags(Vec<String>),
}

/// The integer types of WIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WitInteger {
    S8,
    U8,
    S16,
    U16,
    S32,
    U32,
    S64,
    U64,
}

impl WitInteger {
    /// Returns the smallest and the largest value.
    pub(super) fn range(self) -> (i128, i128) {
        match self {
            Self::S8 => (i8::MIN.into(), i8::MAX.into()),
            Self::U8 => (0, u8::MAX.into()),
            Self::S16 => (i16::MIN.into(), i16::MAX.into()),
            Self::U16 => (0, u16::MAX.into()),
            Self::S32 => (i32::MIN.into(), i32::MAX.into()),
            Self::U32 => (0, u32::MAX.into()),
            Self::S64 => (i64::MIN.into(), i64::MAX.into()),
            Self::U64 => (0, u64::MAX.into()),
        }
    }

    /// Returns whether the type has values that JSON numbers, as most clients read them, cannot
    /// represent.
    pub(super) fn is_wide(self) -> bool {
        matches!(self, Self::S64 | Self::U64)
    }
}

/// Size budget for all signatures of a component, in bytes: the names of their types, and
/// [`TYPE_OVERHEAD_BYTES`] bytes for each type. A component stores a type once, but each signature
/// that uses it gets a copy.
const MAX_SIGNATURES_BYTES: usize = 4 << 20;

/// Size of a type in addition to its names, in bytes.
const TYPE_OVERHEAD_BYTES: usize = 64;

/// The remaining budget for the signatures of one component.
pub(super) struct SignatureBudget {
    /// Remaining types in the current signature.
    types_left: usize,
    bytes_left: usize,
}

impl Default for SignatureBudget {
    fn default() -> Self {
        Self {
            types_left: MAX_TYPES,
            bytes_left: MAX_SIGNATURES_BYTES,
        }
    }
}

impl SignatureBudget {
    /// Starts the next signature.
    pub(super) fn start_signature(&mut self) {
        self.types_left = MAX_TYPES;
    }

    fn take_type(&mut self) -> Result<(), String> {
        self.types_left = self
            .types_left
            .checked_sub(1)
            .ok_or_else(|| format!("its signature has more than {MAX_TYPES} types"))?;
        self.take_bytes(TYPE_OVERHEAD_BYTES)
    }

    /// Copies a name into the tree and charges for it.
    pub(super) fn take_name(&mut self, name: &str) -> Result<String, String> {
        self.take_bytes(name.len())?;
        Ok(name.to_owned())
    }

    fn take_names<'a>(
        &mut self,
        mut names: impl Iterator<Item = &'a str>,
    ) -> Result<Vec<String>, String> {
        names.try_fold(Vec::new(), |mut copies, name| {
            self.take_bytes(TYPE_OVERHEAD_BYTES)?;
            copies.push(self.take_name(name)?);
            Ok(copies)
        })
    }

    fn take_bytes(&mut self, bytes: usize) -> Result<(), String> {
        let left = self.bytes_left.checked_sub(bytes);
        // Once the budget is exceeded, further types would only cost time.
        self.bytes_left = left.unwrap_or(0);
        left.map(drop).ok_or_else(|| {
            "the signatures of the component's functions are too large together".into()
        })
    }
}

impl WitType {
    /// Converts a type.
    ///
    /// # Errors
    ///
    /// Returns the reason why the type cannot be part of a tool.
    pub(super) fn from_type(ty: &Type, budget: &mut SignatureBudget) -> Result<Self, String> {
        Self::from_nested_type(ty, budget, 0)
    }

    fn from_nested_type(
        ty: &Type,
        budget: &mut SignatureBudget,
        depth: usize,
    ) -> Result<Self, String> {
        budget.take_type()?;
        if depth > MAX_TYPE_DEPTH {
            return Err(format!(
                "its types are nested more than {MAX_TYPE_DEPTH} levels deep"
            ));
        }
        let inner =
            |ty: &Type, budget: &mut SignatureBudget| Self::from_nested_type(ty, budget, depth + 1);
        Ok(match ty {
            Type::Bool => Self::Bool,
            Type::S8 => Self::Integer(WitInteger::S8),
            Type::U8 => Self::Integer(WitInteger::U8),
            Type::S16 => Self::Integer(WitInteger::S16),
            Type::U16 => Self::Integer(WitInteger::U16),
            Type::S32 => Self::Integer(WitInteger::S32),
            Type::U32 => Self::Integer(WitInteger::U32),
            Type::S64 => Self::Integer(WitInteger::S64),
            Type::U64 => Self::Integer(WitInteger::U64),
            Type::Float32 => Self::Float32,
            Type::Float64 => Self::Float64,
            Type::Char => Self::Char,
            Type::String => Self::String,
            Type::List(list) => match inner(&list.ty(), budget)? {
                Self::Integer(WitInteger::U8) => Self::Bytes,
                item => Self::List(Box::new(item)),
            },
            Type::Record(record) => {
                let fields = record
                    .fields()
                    .map(|field| Ok((budget.take_name(field.name)?, inner(&field.ty, budget)?)));
                Self::Record(fields.collect::<Result<_, String>>()?)
            }
            Type::Tuple(tuple) => Self::Tuple(
                tuple
                    .types()
                    .map(|ty| inner(&ty, budget))
                    .collect::<Result<_, _>>()?,
            ),
            Type::Variant(variant) => {
                let cases = variant.cases().map(|case| {
                    let inner = case.ty.map(|ty| inner(&ty, budget)).transpose()?;
                    budget.take_bytes(TYPE_OVERHEAD_BYTES)?;
                    Ok((budget.take_name(case.name)?, inner))
                });
                Self::Variant(cases.collect::<Result<_, String>>()?)
            }
            Type::Enum(names) => Self::Enum(budget.take_names(names.names())?),
            Type::Option(option) => Self::Option(Box::new(inner(&option.ty(), budget)?)),
            Type::Result(result) => {
                let ok = result
                    .ok()
                    .map(|ty| inner(&ty, budget))
                    .transpose()?
                    .map(Box::new);
                Self::Result(
                    ok,
                    result
                        .err()
                        .map(|ty| inner(&ty, budget))
                        .transpose()?
                        .map(Box::new),
                )
            }
            Type::Flags(flags) => Self::Flags(budget.take_names(flags.names())?),
            Type::Own(_) | Type::Borrow(_) => {
                return Err("a parameter or its result is a resource".into());
            }
            Type::Future(_) | Type::Stream(_) => {
                return Err("a parameter or its result is a future or a stream".into());
            }
            Type::ErrorContext | Type::Map(_) | Type::FixedLengthList(_) => {
                return Err(
                    "a parameter or its result has a type that WASI 0.2 does not have".into(),
                );
            }
        })
    }

    /// Returns whether JSON `null` is one of its values.
    pub(super) fn is_nullable(&self) -> bool {
        matches!(self, Self::Option(_))
    }
}

/// Formats the type in WIT notation. Types without a name are written out.
impl fmt::Display for WitType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => f.write_str("bool"),
            Self::Integer(integer) => write!(f, "{}", format!("{integer:?}").to_lowercase()),
            Self::Float32 => f.write_str("f32"),
            Self::Float64 => f.write_str("f64"),
            Self::Char => f.write_str("char"),
            Self::String => f.write_str("string"),
            Self::Bytes => f.write_str("list<u8>"),
            Self::List(item) => write!(f, "list<{item}>"),
            Self::Record(fields) => {
                let fields = fields
                    .iter()
                    .map(|(name, shape)| format!("{name}: {shape}"));
                write!(f, "record {{ {} }}", join_comma_separated(fields))
            }
            Self::Tuple(items) => write!(
                f,
                "tuple<{}>",
                join_comma_separated(items.iter().map(ToString::to_string))
            ),
            Self::Variant(cases) => {
                let cases = cases.iter().map(|(name, shape)| match shape {
                    Some(shape) => format!("{name}({shape})"),
                    None => name.clone(),
                });
                write!(f, "variant {{ {} }}", join_comma_separated(cases))
            }
            Self::Enum(names) => write!(
                f,
                "enum {{ {} }}",
                join_comma_separated(names.iter().cloned())
            ),
            Self::Flags(names) => write!(
                f,
                "flags {{ {} }}",
                join_comma_separated(names.iter().cloned())
            ),
            Self::Option(inner) => write!(f, "option<{inner}>"),
            Self::Result(None, None) => f.write_str("result"),
            Self::Result(Some(ok), None) => write!(f, "result<{ok}>"),
            Self::Result(None, Some(err)) => write!(f, "result<_, {err}>"),
            Self::Result(Some(ok), Some(err)) => write!(f, "result<{ok}, {err}>"),
        }
    }
}

fn join_comma_separated(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}
