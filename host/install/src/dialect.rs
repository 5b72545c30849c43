//! How the configurations of clients are written.

/// How a client's configuration and its entries are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryFormat {
    /// The language of the file.
    pub format: FileFormat,
    /// The key of the table with an entry for each server.
    pub servers: &'static str,
    /// Whether an entry that has a command says so in `type`.
    pub stdio_type: bool,
    /// Whether an entry that has a URL says so in `type`.
    pub http_type: bool,
    /// The key of the URL. `None`: the client starts servers only.
    pub url: Option<&'static str>,
    /// How an entry names the variable with a bearer token.
    pub token: TokenForm,
}

/// The language of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// JSON, with comments and trailing commas if the file has any.
    Json,
    /// TOML.
    Toml,
}

/// How an entry names the variable with a bearer token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenForm {
    /// It cannot.
    None,
    /// In the header `Authorization`, between these two texts.
    Header(&'static str, &'static str),
    /// In this key.
    Key(&'static str),
}
